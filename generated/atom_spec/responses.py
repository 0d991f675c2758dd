# Derived from spec/openapi.yaml by spec/codegen; edit that and run `make generate`.
"""Requests and answers of OpenAI's Responses endpoint, as msgspec structs."""

from __future__ import annotations
from typing import Annotated, Any, Literal, TypeAlias
from msgspec import Meta, Struct, UNSET, UnsetType


class AnyJson(Struct, kw_only=True, tag_field="type", tag="json_object", forbid_unknown_fields=True):
    pass


class ContentPartAdded(Struct, kw_only=True):
    type: Literal["response.content_part.added"] = "response.content_part.added"
    sequence_number: Annotated[int, Meta(ge=0)]
    item_id: str
    output_index: Annotated[int, Meta(ge=0)]
    content_index: Annotated[int, Meta(ge=0)]
    part: OutputText | ReasoningText


class ContentPartDone(Struct, kw_only=True):
    type: Literal["response.content_part.done"] = "response.content_part.done"
    sequence_number: Annotated[int, Meta(ge=0)]
    item_id: str
    output_index: Annotated[int, Meta(ge=0)]
    content_index: Annotated[int, Meta(ge=0)]
    part: OutputText | ReasoningText


class FunctionCallArgumentsDelta(Struct, kw_only=True):
    type: Literal["response.function_call_arguments.delta"] = "response.function_call_arguments.delta"
    sequence_number: Annotated[int, Meta(ge=0)]
    item_id: str
    output_index: Annotated[int, Meta(ge=0)]
    delta: str


class FunctionCallArgumentsDone(Struct, kw_only=True):
    type: Literal["response.function_call_arguments.done"] = "response.function_call_arguments.done"
    sequence_number: Annotated[int, Meta(ge=0)]
    item_id: str
    output_index: Annotated[int, Meta(ge=0)]
    name: str
    arguments: str


class FunctionCallItem(Struct, kw_only=True, tag_field="type", tag="function_call"):
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    call_id: str
    name: str
    arguments: str


class FunctionCallOutput(Struct, kw_only=True, tag_field="type", tag="function_call_output"):
    call_id: Annotated[str, Meta(min_length=1)]
    output: str | list[InputText | PastOutputText | PastRefusal | InputImage | InputFile]


class FunctionChoice(Struct, kw_only=True, forbid_unknown_fields=True):
    type: Literal["function"]
    name: Annotated[str, Meta(min_length=1)]


class FunctionTool(Struct, kw_only=True, tag_field="type", tag="function"):
    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_.:/-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class IncompleteDetails(Struct, kw_only=True):
    reason: Literal["max_output_tokens"] = "max_output_tokens"


class InputFile(Struct, kw_only=True, tag_field="type", tag="input_file"):
    """Refused; send the file's text."""


class InputImage(Struct, kw_only=True, tag_field="type", tag="input_image"):
    """Refused when the model has no vision."""


class InputMessage(Struct, kw_only=True, tag_field="type", tag="message"):
    """The type may be left out."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputText | PastOutputText | PastRefusal | InputImage | InputFile]


class InputText(Struct, kw_only=True, tag_field="type", tag="input_text"):
    text: str


class InputTokensDetails(Struct, kw_only=True):
    cached_tokens: Annotated[int, Meta(ge=0)]
    cache_write_tokens: Annotated[int, Meta(ge=0, le=0)]


class ItemReference(Struct, kw_only=True, tag_field="type", tag="item_reference"):
    """Refused, no items are kept; send the item itself."""

    id: str


class JsonOfSchema(Struct, kw_only=True, tag_field="type", tag="json_schema", forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1)]
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class NamespaceTool(Struct, kw_only=True, tag_field="type", tag="namespace"):
    """Ignored. Codex sends these to every model; the answer's `tools` says what is in force."""

    name: str | None = None


class OutputItemAdded(Struct, kw_only=True):
    type: Literal["response.output_item.added"] = "response.output_item.added"
    sequence_number: Annotated[int, Meta(ge=0)]
    output_index: Annotated[int, Meta(ge=0)]
    item: ReasoningItem | OutputMessage | FunctionCallItem


class OutputItemDone(Struct, kw_only=True):
    type: Literal["response.output_item.done"] = "response.output_item.done"
    sequence_number: Annotated[int, Meta(ge=0)]
    output_index: Annotated[int, Meta(ge=0)]
    item: ReasoningItem | OutputMessage | FunctionCallItem


class OutputMessage(Struct, kw_only=True, tag_field="type", tag="message"):
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["assistant"] = "assistant"
    content: list[OutputText]


class OutputText(Struct, kw_only=True, tag_field="type", tag="output_text"):
    text: str
    annotations: Annotated[list[str], Meta(max_length=0)]
    logprobs: list[ResponsesTokenLogprob]


class OutputTextDelta(Struct, kw_only=True):
    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    sequence_number: Annotated[int, Meta(ge=0)]
    item_id: str
    output_index: Annotated[int, Meta(ge=0)]
    content_index: Annotated[int, Meta(ge=0)]
    delta: str
    logprobs: list[ResponsesTokenLogprob]


class OutputTextDone(Struct, kw_only=True):
    type: Literal["response.output_text.done"] = "response.output_text.done"
    sequence_number: Annotated[int, Meta(ge=0)]
    item_id: str
    output_index: Annotated[int, Meta(ge=0)]
    content_index: Annotated[int, Meta(ge=0)]
    text: str
    logprobs: list[ResponsesTokenLogprob]


class PastFunctionCall(Struct, kw_only=True, tag_field="type", tag="function_call"):
    call_id: Annotated[str, Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)]
    arguments: str


class PastOutputText(Struct, kw_only=True, tag_field="type", tag="output_text"):
    text: str


class PastReasoning(Struct, kw_only=True, tag_field="type", tag="reasoning"):
    """Goes back to the template as reasoning; its content, or else its summary. Encrypted content is not read."""

    summary: list[ReasoningPart] | None = None
    content: list[ReasoningPart] | None = None


class PastRefusal(Struct, kw_only=True, tag_field="type", tag="refusal"):
    refusal: str


class PlainText(Struct, kw_only=True, tag_field="type", tag="text", forbid_unknown_fields=True):
    pass


class ReasoningItem(Struct, kw_only=True, tag_field="type", tag="reasoning"):
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    summary: Annotated[list[str], Meta(max_length=0)]
    content: list[ReasoningText]


class ReasoningOptions(Struct, kw_only=True):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: str | None = None


class ReasoningPart(Struct, kw_only=True):
    text: str
    type: str | None = None


class ReasoningText(Struct, kw_only=True, tag_field="type", tag="reasoning_text"):
    text: str


class ReasoningTextDelta(Struct, kw_only=True):
    type: Literal["response.reasoning_text.delta"] = "response.reasoning_text.delta"
    sequence_number: Annotated[int, Meta(ge=0)]
    item_id: str
    output_index: Annotated[int, Meta(ge=0)]
    content_index: Annotated[int, Meta(ge=0)]
    delta: str


class ReasoningTextDone(Struct, kw_only=True):
    type: Literal["response.reasoning_text.done"] = "response.reasoning_text.done"
    sequence_number: Annotated[int, Meta(ge=0)]
    item_id: str
    output_index: Annotated[int, Meta(ge=0)]
    content_index: Annotated[int, Meta(ge=0)]
    text: str


class ReasoningTokensDetails(Struct, kw_only=True):
    reasoning_tokens: Annotated[int, Meta(ge=0)]


class Response(Struct, kw_only=True):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    model: str
    output: list[ReasoningItem | OutputMessage | FunctionCallItem]
    usage: ResponsesUsage | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, Any]
    parallel_tool_calls: bool
    previous_response_id: None
    reasoning: ReasoningOptions
    store: bool
    temperature: float
    text: TextOptions
    tool_choice: Literal["none", "auto", "required"] | FunctionChoice
    tools: list[FunctionTool]
    top_p: float
    truncation: Literal["disabled"] = "disabled"


class ResponseCompleted(Struct, kw_only=True):
    type: Literal["response.completed"] = "response.completed"
    sequence_number: Annotated[int, Meta(ge=0)]
    response: Response


class ResponseCreated(Struct, kw_only=True):
    type: Literal["response.created"] = "response.created"
    sequence_number: Annotated[int, Meta(ge=0)]
    response: Response


class ResponseError(Struct, kw_only=True):
    code: Literal["server_error"] = "server_error"
    message: Annotated[str, Meta(min_length=1)]


class ResponseFailed(Struct, kw_only=True):
    type: Literal["response.failed"] = "response.failed"
    sequence_number: Annotated[int, Meta(ge=0)]
    response: Response


class ResponseInProgress(Struct, kw_only=True):
    type: Literal["response.in_progress"] = "response.in_progress"
    sequence_number: Annotated[int, Meta(ge=0)]
    response: Response


class ResponseIncomplete(Struct, kw_only=True):
    type: Literal["response.incomplete"] = "response.incomplete"
    sequence_number: Annotated[int, Meta(ge=0)]
    response: Response


class ResponsesRequest(Struct, kw_only=True):
    input: str | ResponsesRequestInput
    model: str | None = None
    instructions: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=8388608)] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    tools: Annotated[list[FunctionTool | NamespaceTool | WebSearchTool], Meta(max_length=1024)] | None = None
    tool_choice: Literal["none", "auto", "required"] | FunctionChoice | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningOptions | None = None
    text: TextOptions | None = None
    stream: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    store: bool | None = None
    include: (
        list[
            Literal[
                "message.output_text.logprobs",
                "reasoning.encrypted_content",
                "web_search_call.results",
                "web_search_call.action.sources",
                "file_search_call.results",
                "message.input_image.image_url",
                "computer_call_output.output.image_url",
                "code_interpreter_call.outputs",
            ]
        ]
        | None
    ) = None
    stream_options: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    truncation: str | None = None
    conversation: None = None
    prompt: None = None
    max_tool_calls: None = None


ResponsesRequestInput: TypeAlias = Annotated[
    list[InputMessage | PastReasoning | PastFunctionCall | FunctionCallOutput | ItemReference], Meta(min_length=1)
]


class ResponsesTokenLogprob(Struct, kw_only=True):
    token: str
    logprob: float
    bytes: list[ResponsesTokenLogprobByte]
    top_logprobs: list[ResponsesTopLogprob]


ResponsesTokenLogprobByte: TypeAlias = Annotated[int, Meta(ge=0, le=255)]


class ResponsesTopLogprob(Struct, kw_only=True):
    token: str
    logprob: float
    bytes: list[ResponsesTopLogprobByte]


ResponsesTopLogprobByte: TypeAlias = Annotated[int, Meta(ge=0, le=255)]


class ResponsesUsage(Struct, kw_only=True):
    input_tokens: Annotated[int, Meta(ge=0)]
    input_tokens_details: InputTokensDetails
    output_tokens: Annotated[int, Meta(ge=0)]
    output_tokens_details: ReasoningTokensDetails
    total_tokens: Annotated[int, Meta(ge=0)]


class TextOptions(Struct, kw_only=True):
    format: PlainText | AnyJson | JsonOfSchema | None = None
    verbosity: str | None = None


class WebSearchTool(Struct, kw_only=True, tag_field="type", tag="web_search"):
    """Ignored. Codex sends it to every model; the answer's `tools` says what is in force."""


# What holds for a field that a request leaves out, and that the model's own files do not set.
DEFAULTS: dict[str, dict[str, bool | int | float | str]] = {
    "ResponsesRequest": {
        "temperature": 1.0,
        "top_p": 1.0,
        "parallel_tool_calls": True,
        "stream": False,
        "background": False,
        "truncation": "disabled",
    }
}
