"""What one event of a stream says: the protocols' frames, read into one form.

Owns the JSON of each protocol's frames and the answer to "does this frame carry a token?". Does not know time or HTTP.
Decoding is typed and skips every field that no metric needs: 1 to 2 microseconds a frame.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Piece(msgspec.Struct, frozen=True, gc=False):
    """One frame. text: what it adds to the answer, in the order of the stream, reasoning and tool calls included.

    has_token: it shows at least one generated token; an empty role frame does not. is_last: the answer ends here.
    prompt_tokens, output_tokens: the server's own count, where the frame has it. error: the server's message.
    """

    text: str = ""
    has_token: bool = False
    is_last: bool = False
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    error: str = ""


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, gc=False):
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Logprobs(msgspec.Struct, gc=False):
    tokens: list[msgspec.Raw] | None = None
    content: list[msgspec.Raw] | None = None


class _Choice(msgspec.Struct, gc=False):
    text: str | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _OpenAIFrame(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    object: str | None = None
    message: str | None = None


class _TgiToken(msgspec.Struct, gc=False):
    text: str = ""


class _TgiDetails(msgspec.Struct, gc=False):
    generated_tokens: int | None = None
    input_length: int | None = None


class _TgiFrame(msgspec.Struct, gc=False):
    token: _TgiToken | None = None
    generated_text: str | None = None
    details: _TgiDetails | None = None
    error: Any = None


class _TrtLlmFrame(msgspec.Struct, gc=False):
    text_output: str | None = None
    error: Any = None


class _MiiAnswer(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    text: list[str] | str | None = None
    usage: _Usage | None = None


_openai = msgspec.json.Decoder(_OpenAIFrame)
_mii = msgspec.json.Decoder(_MiiAnswer)
_tgi = msgspec.json.Decoder(_TgiFrame)
_trt_llm = msgspec.json.Decoder(_TrtLlmFrame)


def read_openai(data: bytes) -> Piece:
    """A frame of /v1/completions or /v1/chat/completions, or a whole answer. Raises msgspec.MsgspecError."""
    frame = _openai.decode(data)
    if frame.error is not None or frame.object == "error":
        return Piece(error=error_message(frame.error) or frame.message or "the server sent an error frame")
    text, has_token, is_last = "", False, False
    for choice in frame.choices or ():
        text += (choice.text or "") + _delta_text(choice.delta or choice.message)
        logprobs = choice.logprobs
        has_token = has_token or bool(text or (logprobs and (logprobs.content or logprobs.tokens)))
        is_last = is_last or choice.finish_reason is not None
    usage = frame.usage
    if usage is None:
        return Piece(text, has_token, is_last)
    return Piece(text, has_token, is_last, usage.prompt_tokens, usage.completion_tokens)


def read_tgi(data: bytes) -> Piece:
    """A frame of text-generation-inference's /generate_stream: one token each. Raises msgspec.MsgspecError."""
    frame = _tgi.decode(data)
    if frame.error is not None:
        return Piece(error=error_message(frame.error))
    details = frame.details or _TgiDetails()
    is_last = frame.generated_text is not None
    text = frame.token.text if frame.token else ""
    return Piece(text, frame.token is not None, is_last, details.input_length, details.generated_tokens)


def read_trt_llm(data: bytes) -> Piece:
    """A frame of Triton's generate_stream over TensorRT-LLM. Raises msgspec.MsgspecError."""
    frame = _trt_llm.decode(data)
    if frame.error is not None:
        return Piece(error=error_message(frame.error))
    text = frame.text_output or ""
    return Piece(text, bool(text))


def read_mii(data: bytes) -> Piece:
    """DeepSpeed-MII's whole answer: OpenAI's form, or `text` alone. Raises msgspec.MsgspecError."""
    answer = _mii.decode(data)
    if answer.text is not None:
        text = answer.text if isinstance(answer.text, str) else "".join(answer.text)
        return Piece(text, bool(text), True)
    return read_openai(data)


def error_message(error: Any) -> str:
    """The message in an error object of any of the protocols; a plain string is its own."""
    if isinstance(error, dict):
        message = error.get("message") or error.get("error") or error.get("detail")
        return error_message(message) if message else str(error)
    return "" if error is None else str(error)


def _delta_text(delta: _Delta | None) -> str:
    if delta is None:
        return ""
    reasoning = delta.reasoning_content or delta.reasoning or ""  # servers that send both send the same text twice
    text = reasoning + (delta.content or "")
    if delta.tool_calls:
        functions = [call.function for call in delta.tool_calls if call.function]
        text += "".join((function.name or "") + (function.arguments or "") for function in functions)
    return text
