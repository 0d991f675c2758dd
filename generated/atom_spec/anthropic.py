# Derived from spec/openapi.yaml by spec/codegen; edit that and run `make generate`.
"""Requests and answers of the Anthropic endpoints, as msgspec structs."""

from __future__ import annotations
from typing import Annotated, Any, Literal, TypeAlias
from msgspec import Meta, Struct, UNSET, UnsetType


class AnthropicErrorBody(Struct, kw_only=True):
    type: Literal[
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "request_too_large",
        "rate_limit_error",
        "api_error",
        "overloaded_error",
    ]
    message: Annotated[str, Meta(min_length=1)]


class AnthropicErrorResponse(Struct, kw_only=True):
    type: Literal["error"] = "error"
    error: AnthropicErrorBody
    request_id: str


class AnthropicTool(Struct, kw_only=True):
    """A tool that the client runs. Those of Anthropic's own service, which have other types, are refused."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_.:/-]{1,128}$")]
    input_schema: dict[str, Any]
    type: Literal["custom"] | None = None
    description: str | None = None
    strict: bool | None = None


class AnthropicUsage(Struct, kw_only=True):
    input_tokens: Annotated[int, Meta(ge=0)]
    cache_creation_input_tokens: Annotated[int, Meta(ge=0, le=0)]
    cache_read_input_tokens: Annotated[int, Meta(ge=0)]
    output_tokens: Annotated[int, Meta(ge=0)]
    output_tokens_details: OutputTokensDetails


class AnyToolChoice(Struct, kw_only=True, tag_field="type", tag="any", forbid_unknown_fields=True):
    disable_parallel_tool_use: bool | None = None


class AssistantTurn(Struct, kw_only=True, tag_field="role", tag="assistant"):
    """May not be the last one, the server does not continue a begun answer."""

    content: str | list[TextBlock | PastThinkingBlock | RedactedThinkingBlock | ToolUseBlock]


class AutoToolChoice(Struct, kw_only=True, tag_field="type", tag="auto", forbid_unknown_fields=True):
    disable_parallel_tool_use: bool | None = None


class ContentBlockDelta(Struct, kw_only=True):
    type: Literal["content_block_delta"] = "content_block_delta"
    index: Annotated[int, Meta(ge=0)]
    delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class ContentBlockStart(Struct, kw_only=True):
    """Blocks come one after the other, with indexes from 0. The block is empty; of a tool_use, id and name are there."""

    type: Literal["content_block_start"] = "content_block_start"
    index: Annotated[int, Meta(ge=0)]
    content_block: TextBlock | ThinkingBlock | ToolUseBlock


class ContentBlockStop(Struct, kw_only=True):
    type: Literal["content_block_stop"] = "content_block_stop"
    index: Annotated[int, Meta(ge=0)]


class CountTokensRequest(Struct, kw_only=True):
    messages: Annotated[list[UserTurn | AssistantTurn | SystemTurn], Meta(min_length=1)]
    model: str | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=8388608)] | None = None
    system: str | list[TextBlock | ImageBlock | DocumentBlock] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2147483647)] | None = None
    stop_sequences: Annotated[list[CountTokensRequestStopSequence], Meta(max_length=16)] | None = None
    stream: bool | None = None
    thinking: ThinkingConfig | None = None
    tools: Annotated[list[AnthropicTool], Meta(max_length=1024)] | None = None
    tool_choice: AutoToolChoice | AnyToolChoice | OneToolChoice | NoToolChoice | None = None
    output_config: OutputConfig | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None
    mcp_servers: Annotated[list[Any], Meta(max_length=0)] | None = None


CountTokensRequestStopSequence: TypeAlias = Annotated[str, Meta(max_length=1024, min_length=1)]


class DocumentBlock(Struct, kw_only=True, tag_field="type", tag="document"):
    """Refused; send the document's text."""

    source: dict[str, Any]


class ImageBlock(Struct, kw_only=True, tag_field="type", tag="image"):
    """Refused when the model has no vision."""

    source: dict[str, Any]


class InputJsonDelta(Struct, kw_only=True, tag_field="type", tag="input_json_delta"):
    partial_json: str


class Message(Struct, kw_only=True):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[TextBlock | ThinkingBlock | ToolUseBlock]
    stop_reason: Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"] | None
    stop_sequence: str | None
    usage: AnthropicUsage


class MessageDelta(Struct, kw_only=True):
    type: Literal["message_delta"] = "message_delta"
    delta: StopDelta
    usage: AnthropicUsage


class MessageStart(Struct, kw_only=True):
    type: Literal["message_start"] = "message_start"
    message: Message


class MessageStop(Struct, kw_only=True):
    type: Literal["message_stop"] = "message_stop"


class MessagesRequest(Struct, kw_only=True):
    """Unknown fields are ignored, among them cache_control, context_management, container and betas."""

    max_tokens: Annotated[int, Meta(ge=1, le=8388608)]
    messages: Annotated[list[UserTurn | AssistantTurn | SystemTurn], Meta(min_length=1)]
    model: str | None = None
    system: str | list[TextBlock | ImageBlock | DocumentBlock] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2147483647)] | None = None
    stop_sequences: Annotated[list[MessagesRequestStopSequence], Meta(max_length=16)] | None = None
    stream: bool | None = None
    thinking: ThinkingConfig | None = None
    tools: Annotated[list[AnthropicTool], Meta(max_length=1024)] | None = None
    tool_choice: AutoToolChoice | AnyToolChoice | OneToolChoice | NoToolChoice | None = None
    output_config: OutputConfig | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None
    mcp_servers: Annotated[list[Any], Meta(max_length=0)] | None = None


MessagesRequestStopSequence: TypeAlias = Annotated[str, Meta(max_length=1024, min_length=1)]


class NoToolChoice(Struct, kw_only=True, tag_field="type", tag="none", forbid_unknown_fields=True):
    disable_parallel_tool_use: bool | None = None


class OneToolChoice(Struct, kw_only=True, tag_field="type", tag="tool", forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1)]
    disable_parallel_tool_use: bool | None = None


class OutputConfig(Struct, kw_only=True):
    effort: Literal["minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None


class OutputFormat(Struct, kw_only=True, forbid_unknown_fields=True):
    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputTokensDetails(Struct, kw_only=True):
    thinking_tokens: Annotated[int, Meta(ge=0)]


class PastThinkingBlock(Struct, kw_only=True, tag_field="type", tag="thinking"):
    """Goes back to the template as reasoning; the signature is not checked."""

    thinking: str
    signature: str | None = None


class Ping(Struct, kw_only=True):
    """Sent while the next event is waited for."""

    type: Literal["ping"] = "ping"


class RedactedThinkingBlock(Struct, kw_only=True, tag_field="type", tag="redacted_thinking"):
    """Accepted; there is nothing in it to read."""

    data: str | None = None


class SignatureDelta(Struct, kw_only=True, tag_field="type", tag="signature_delta"):
    signature: str


class StopDelta(Struct, kw_only=True):
    stop_reason: Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"] | None
    stop_sequence: str | None


class SystemTurn(Struct, kw_only=True, tag_field="role", tag="system"):
    content: str | list[TextBlock | ImageBlock | DocumentBlock]


class TextBlock(Struct, kw_only=True, tag_field="type", tag="text"):
    text: str


class TextDelta(Struct, kw_only=True, tag_field="type", tag="text_delta"):
    text: str


class ThinkingBlock(Struct, kw_only=True, tag_field="type", tag="thinking"):
    thinking: str
    signature: str


class ThinkingConfig(Struct, kw_only=True):
    """disabled sets the template's switch, and nothing of what is thought all the same is sent; adaptive leaves it to the model."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Annotated[int, Meta(ge=0)] | None = None
    display: Literal["summarized", "omitted"] | None = None


class ThinkingDelta(Struct, kw_only=True, tag_field="type", tag="thinking_delta"):
    thinking: str


class TokenCount(Struct, kw_only=True):
    input_tokens: Annotated[int, Meta(ge=0)]


class ToolResultBlock(Struct, kw_only=True, tag_field="type", tag="tool_result"):
    tool_use_id: Annotated[str, Meta(min_length=1)]
    content: str | list[TextBlock | ImageBlock | DocumentBlock] | None = None
    is_error: bool | None = None


class ToolUseBlock(Struct, kw_only=True, tag_field="type", tag="tool_use"):
    id: Annotated[str, Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)]
    input: dict[str, Any]


class UserTurn(Struct, kw_only=True, tag_field="role", tag="user"):
    """Results of tools come first in the prompt, in their order, then the text as it is written."""

    content: str | list[TextBlock | ToolResultBlock | ImageBlock | DocumentBlock]


# What holds for a field that a request leaves out, and that the model's own files do not set.
DEFAULTS: dict[str, dict[str, bool | int | float | str]] = {
    "AnthropicTool": {"type": "custom"},
    "AnyToolChoice": {"disable_parallel_tool_use": False},
    "AutoToolChoice": {"disable_parallel_tool_use": False},
    "CountTokensRequest": {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "stream": False},
    "MessagesRequest": {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "stream": False},
    "NoToolChoice": {"disable_parallel_tool_use": False},
    "OneToolChoice": {"disable_parallel_tool_use": False},
    "ToolResultBlock": {"is_error": False},
}
