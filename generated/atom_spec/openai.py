# Derived from spec/openapi.yaml by spec/codegen; edit that and run `make generate`.
"""Requests and answers of the OpenAI endpoints, as msgspec structs."""

from __future__ import annotations
from typing import Annotated, Any, Literal, TypeAlias
from msgspec import Meta, Struct, UNSET, UnsetType


class AssistantMessage(Struct, kw_only=True, tag_field="role", tag="assistant"):
    content: str | list[TextPart | RefusalPart] | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[PastToolCall] | None = None


class ChatAnswer(Struct, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str | None
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: Annotated[list[ToolCall], Meta(min_length=1)] | UnsetType = UNSET


class ChatChoice(Struct, kw_only=True):
    index: Annotated[int, Meta(ge=0)]
    message: ChatAnswer
    finish_reason: Literal["stop", "length", "tool_calls"]
    logprobs: ChatLogprobs | None


class ChatChunkChoice(Struct, kw_only=True):
    index: Annotated[int, Meta(ge=0)]
    delta: ChatDelta
    finish_reason: Literal["stop", "length", "tool_calls"] | None
    logprobs: ChatLogprobs | None | UnsetType = UNSET


class ChatCompletion(Struct, kw_only=True):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class ChatCompletionChunk(Struct, kw_only=True):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None | UnsetType = UNSET


class ChatCompletionRequest(Struct, kw_only=True):
    model: str | None = None
    messages: (
        Annotated[
            list[SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage], Meta(min_length=1)
        ]
        | None
    ) = None
    prompt: (
        Annotated[
            list[SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage], Meta(min_length=1)
        ]
        | None
    ) = None
    max_tokens: Annotated[int, Meta(ge=1, le=8388608)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1, le=8388608)] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2147483647)] | None = None
    min_p: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2.0, le=2.0)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2.0, le=2.0)] | None = None
    repetition_penalty: Annotated[float, Meta(ge=0.01, le=10000.0)] | None = None
    logit_bias: dict[str, ChatCompletionRequestLogitBiasAdditionalProperty] | None = None
    seed: Annotated[int, Meta(ge=-9223372036854775808, le=9223372036854775807)] | None = None
    stop: ChatCompletionRequestStop | ChatCompletionRequestStop1 | None = None
    stop_token_ids: Annotated[list[ChatCompletionRequestStopTokenId], Meta(max_length=64)] | None = None
    include_stop_str_in_output: bool | None = None
    continue_final_message: bool | None = None
    skip_special_tokens: bool | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=2147483647)] | None = None
    ignore_eos: bool | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[Tool], Meta(max_length=1024)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    thinking: ThinkingOption | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    verbosity: str | None = None
    modalities: list[Literal["text"]] | None = None
    audio: None = None
    prediction: None = None
    web_search_options: None = None
    functions: None = None
    function_call: None = None


ChatCompletionRequestLogitBiasAdditionalProperty: TypeAlias = Annotated[float, Meta(ge=-100.0, le=100.0)]


ChatCompletionRequestStop: TypeAlias = Annotated[str, Meta(max_length=1024, min_length=1)]


ChatCompletionRequestStop1ChatCompletionRequestStop1Item: TypeAlias = Annotated[
    str, Meta(max_length=1024, min_length=1)
]


ChatCompletionRequestStop1: TypeAlias = Annotated[
    list[ChatCompletionRequestStop1ChatCompletionRequestStop1Item], Meta(max_length=16)
]


ChatCompletionRequestStopTokenId: TypeAlias = Annotated[int, Meta(ge=0, le=2147483647)]


class ChatDelta(Struct, kw_only=True):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: Annotated[list[ToolCallDelta], Meta(min_length=1)] | UnsetType = UNSET


class ChatLogprobs(Struct, kw_only=True):
    content: list[ChatTokenLogprob]


class ChatTokenLogprob(Struct, kw_only=True):
    token: str
    logprob: float
    bytes: list[ChatTokenLogprobByte]
    top_logprobs: list[ChatTopLogprob]


ChatTokenLogprobByte: TypeAlias = Annotated[int, Meta(ge=0, le=255)]


class ChatTopLogprob(Struct, kw_only=True):
    token: str
    logprob: float
    bytes: list[ChatTopLogprobByte]


ChatTopLogprobByte: TypeAlias = Annotated[int, Meta(ge=0, le=255)]


class Completion(Struct, kw_only=True):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage


class CompletionChoice(Struct, kw_only=True):
    index: Annotated[int, Meta(ge=0)]
    text: str
    finish_reason: Literal["stop", "length"]
    logprobs: CompletionLogprobs | None


class CompletionChunk(Struct, kw_only=True):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChunkChoice]
    usage: Usage | None | UnsetType = UNSET


class CompletionChunkChoice(Struct, kw_only=True):
    index: Annotated[int, Meta(ge=0)]
    text: str
    finish_reason: Literal["stop", "length"] | None
    logprobs: CompletionLogprobs | None


class CompletionLogprobs(Struct, kw_only=True):
    """One entry a token; the prompt's first token, when it is echoed, has null."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[CompletionLogprobsTextOffsetItem]


CompletionLogprobsTextOffsetItem: TypeAlias = Annotated[int, Meta(ge=0)]


class CompletionRequest(Struct, kw_only=True):
    prompt: str | CompletionRequestPrompt
    model: str | None = None
    max_tokens: Annotated[int, Meta(ge=0, le=8388608)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=0, le=8388608)] | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    best_of: Annotated[int, Meta(ge=1, le=128)] | None = None
    suffix: None = None
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2147483647)] | None = None
    min_p: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2.0, le=2.0)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2.0, le=2.0)] | None = None
    repetition_penalty: Annotated[float, Meta(ge=0.01, le=10000.0)] | None = None
    logit_bias: dict[str, CompletionRequestLogitBiasAdditionalProperty] | None = None
    seed: Annotated[int, Meta(ge=-9223372036854775808, le=9223372036854775807)] | None = None
    stop: CompletionRequestStop | CompletionRequestStop1 | None = None
    stop_token_ids: Annotated[list[CompletionRequestStopTokenId], Meta(max_length=64)] | None = None
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=2147483647)] | None = None
    ignore_eos: bool | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None


CompletionRequestLogitBiasAdditionalProperty: TypeAlias = Annotated[float, Meta(ge=-100.0, le=100.0)]


CompletionRequestPromptCompletionRequestPrompt: TypeAlias = Annotated[int, Meta(ge=0, le=2147483647)]


CompletionRequestPromptCompletionRequestPrompt1CompletionRequestPromptCompletionRequestPrompt1Item: TypeAlias = (
    Annotated[int, Meta(ge=0, le=2147483647)]
)


CompletionRequestPromptCompletionRequestPrompt1: TypeAlias = Annotated[
    list[CompletionRequestPromptCompletionRequestPrompt1CompletionRequestPromptCompletionRequestPrompt1Item],
    Meta(min_length=1),
]


CompletionRequestPrompt: TypeAlias = Annotated[
    list[str | CompletionRequestPromptCompletionRequestPrompt | CompletionRequestPromptCompletionRequestPrompt1],
    Meta(min_length=1),
]


CompletionRequestStop: TypeAlias = Annotated[str, Meta(max_length=1024, min_length=1)]


CompletionRequestStop1CompletionRequestStop1Item: TypeAlias = Annotated[str, Meta(max_length=1024, min_length=1)]


CompletionRequestStop1: TypeAlias = Annotated[
    list[CompletionRequestStop1CompletionRequestStop1Item], Meta(max_length=16)
]


CompletionRequestStopTokenId: TypeAlias = Annotated[int, Meta(ge=0, le=2147483647)]


class CompletionTokensDetails(Struct, kw_only=True):
    reasoning_tokens: Annotated[int, Meta(ge=0)]


class DeveloperMessage(Struct, kw_only=True, tag_field="role", tag="developer"):
    content: str | list[TextPart | ImagePart]
    name: str | None = None


class ErrorBody(Struct, kw_only=True):
    message: Annotated[str, Meta(min_length=1)]
    type: str
    param: str | None
    code: str | int | None


class ErrorResponse(Struct, kw_only=True):
    error: ErrorBody


class FunctionDefinition(Struct, kw_only=True):
    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_.:/-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ImagePart(Struct, kw_only=True, tag_field="type", tag="image_url"):
    """Refused when the model has no vision."""

    image_url: ImageUrl


class ImageUrl(Struct, kw_only=True):
    url: str
    detail: str | None = None


class JsonObjectFormat(Struct, kw_only=True, tag_field="type", tag="json_object", forbid_unknown_fields=True):
    pass


class JsonSchemaFormat(Struct, kw_only=True, tag_field="type", tag="json_schema", forbid_unknown_fields=True):
    json_schema: JsonSchemaSpec


class JsonSchemaSpec(Struct, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1)]
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class Model(Struct, kw_only=True):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    max_model_len: int | UnsetType = UNSET


class ModelList(Struct, kw_only=True):
    object: Literal["list"] = "list"
    data: Annotated[list[Model], Meta(min_length=1)]


class NamedFunction(Struct, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1)]


class NamedToolChoice(Struct, kw_only=True, forbid_unknown_fields=True):
    type: Literal["function"]
    function: NamedFunction


class PastToolCall(Struct, kw_only=True):
    """A call of an earlier turn. Arguments are JSON text, or the object itself."""

    function: PastToolCallFunction
    id: str | None = None
    type: Literal["function"] | None = None


class PastToolCallFunction(Struct, kw_only=True):
    name: str
    arguments: str | dict[str, Any] | None = None


class PromptTokensDetails(Struct, kw_only=True):
    cached_tokens: Annotated[int, Meta(ge=0)]


class RefusalPart(Struct, kw_only=True, tag_field="type", tag="refusal"):
    refusal: str


class StreamOptions(Struct, kw_only=True):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class SystemMessage(Struct, kw_only=True, tag_field="role", tag="system"):
    content: str | list[TextPart | ImagePart]
    name: str | None = None


class TextFormat(Struct, kw_only=True, tag_field="type", tag="text", forbid_unknown_fields=True):
    pass


class TextPart(Struct, kw_only=True, tag_field="type", tag="text"):
    text: str


class ThinkingOption(Struct, kw_only=True):
    type: Literal["enabled", "disabled", "adaptive"]


class Tool(Struct, kw_only=True):
    function: FunctionDefinition
    type: Literal["function"] | None = None


class ToolCall(Struct, kw_only=True):
    id: str
    type: Literal["function"] = "function"
    function: ToolCallFunction


class ToolCallDelta(Struct, kw_only=True):
    """id, type and the name come once, with a call's first delta."""

    index: Annotated[int, Meta(ge=0)]
    function: ToolCallDeltaFunction
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET


class ToolCallDeltaFunction(Struct, kw_only=True):
    arguments: str
    name: str | UnsetType = UNSET


class ToolCallFunction(Struct, kw_only=True):
    name: str
    arguments: str


class ToolMessage(Struct, kw_only=True, tag_field="role", tag="tool"):
    content: str | list[TextPart | ImagePart]
    tool_call_id: str | None = None
    name: str | None = None


class Usage(Struct, kw_only=True):
    prompt_tokens: Annotated[int, Meta(ge=0)]
    completion_tokens: Annotated[int, Meta(ge=0)]
    total_tokens: Annotated[int, Meta(ge=0)]
    prompt_tokens_details: PromptTokensDetails | UnsetType = UNSET
    completion_tokens_details: CompletionTokensDetails | UnsetType = UNSET
    ttft_s: float | UnsetType = UNSET
    tpot_s: float | UnsetType = UNSET
    latency_s: float | UnsetType = UNSET


class UserMessage(Struct, kw_only=True, tag_field="role", tag="user"):
    content: str | list[TextPart | ImagePart]
    name: str | None = None


# What holds for a field that a request leaves out, and that the model's own files do not set.
DEFAULTS: dict[str, dict[str, bool | int | float | str]] = {
    "ChatCompletionRequest": {
        "max_tokens": 256,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "include_stop_str_in_output": False,
        "continue_final_message": False,
        "skip_special_tokens": True,
        "min_tokens": 0,
        "ignore_eos": False,
        "n": 1,
        "logprobs": False,
        "top_logprobs": 0,
        "stream": False,
        "parallel_tool_calls": True,
    },
    "CompletionRequest": {
        "max_tokens": 256,
        "echo": False,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "include_stop_str_in_output": False,
        "skip_special_tokens": True,
        "min_tokens": 0,
        "ignore_eos": False,
        "n": 1,
        "stream": False,
    },
    "PastToolCall": {"type": "function"},
    "StreamOptions": {"include_usage": False, "continuous_usage_stats": False},
    "Tool": {"type": "function"},
}
