"""Every error that the HTTP API answers with, and the two JSON shapes it takes.

Owns statuses, types, codes and wording. Endpoints raise `ApiError`; `endpoint` turns it into a response, or into the
last frame of a stream. Knows nothing of requests or engines.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from starlette.responses import Response

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}


class ApiError(Exception):
    """An error answer: `status`, and the members of the OpenAI error object. `headers` are added to the response."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code
        self.headers = headers or {}


def bad_request(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """400: the request is wrong in a way that its sender can repair."""
    return ApiError(400, message, param=param, code=code)


def unsupported(param: str, why: str) -> ApiError:
    """400: the field asks for something that this server does not do."""
    return ApiError(400, f"{param}: {why}", param=param, code="unsupported_parameter")


def context_length_exceeded(num_prompt_tokens: int, max_model_len: int, param: str, about: bool = False) -> ApiError:
    """400: the prompt alone leaves no room; both numbers are in the message. `about`: the first one is an estimate."""
    return ApiError(
        400,
        f"The prompt has {'about ' if about else ''}{num_prompt_tokens} tokens, but the model's context holds "
        f"{max_model_len} tokens in all, prompt and answer together. Shorten the prompt.",
        param=param,
        code="context_length_exceeded",
    )


def model_not_found(name: str, served: Iterable[str]) -> ApiError:
    """404: the name is not served; the message lists those that are."""
    listed = ", ".join(served)
    return ApiError(
        404, f"The model {shorten(name)!r} is not served here. Served: {listed}.", param="model", code="model_not_found"
    )


def route_not_found(path: str) -> ApiError:
    """404: no such path."""
    return ApiError(404, f"There is nothing at {shorten(path)}. GET /docs lists the endpoints.", code="not_found")


def method_not_allowed(method: str, allowed: Iterable[str]) -> ApiError:
    """405, with the Allow header."""
    allow = ", ".join(sorted(allowed))
    message = f"Method {shorten(method)} is not allowed here; allowed: {allow}."
    return ApiError(405, message, code="method_not_allowed", headers={"allow": allow})


def unauthorized() -> ApiError:
    """401: no key, or a wrong one."""
    return ApiError(
        401,
        "A valid API key is needed: send it as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'.",
        type="authentication_error",
        code="invalid_api_key",
        headers={"www-authenticate": "Bearer"},
    )


def payload_too_large(limit: int) -> ApiError:
    """413: the body is over --max-request-bytes."""
    return ApiError(413, f"The request body is larger than {limit} bytes.", code="request_too_large")


def unsupported_media_type(content_type: str | None) -> ApiError:
    """415: only JSON is taken."""
    got = "no Content-Type" if not content_type else f"Content-Type {shorten(content_type)!r}"
    return ApiError(
        415, f"The request has {got}; send 'Content-Type: application/json'.", code="unsupported_media_type"
    )


def unsupported_encoding(encoding: str) -> ApiError:
    """415: no body is decompressed."""
    return ApiError(
        415,
        f"The request has Content-Encoding {shorten(encoding)!r}; send the body as it is.",
        code="unsupported_media_type",
        headers={"accept-encoding": "identity"},
    )


def unavailable(message: str, code: str) -> ApiError:
    """503 with a short Retry-After: the same request may succeed soon, here or elsewhere."""
    return ApiError(503, message, type="server_error", code=code, headers={"retry-after": "1"})


def draining() -> ApiError:
    """503: the server was told to stop and takes no new requests."""
    return unavailable("The server is shutting down and takes no new requests.", "shutting_down")


def cut_short() -> ApiError:
    """503: the server stopped before the answer was complete."""
    return unavailable("The server stopped before this answer was complete.", "shutting_down")


def engine_dead() -> ApiError:
    """500: the engine process died under a request. Not to be retried here: the server is about to exit."""
    return ApiError(
        500,
        "The engine stopped while it worked on this request.",
        type="server_error",
        code="engine_dead",
        headers={"x-should-retry": "false"},
    )


def generation_failed(message: str) -> ApiError:
    """500: the engine gave this one sequence up."""
    return ApiError(500, message, type="server_error", code="generation_failed")


def profiler_refused(message: str, code: str) -> ApiError:
    """What the engine said about a profiler that it has not (400), that is in another state (409), or failed (500)."""
    sentence = message[:1].upper() + message[1:] + "."
    if code == "profiler_disabled":
        return bad_request(sentence, code=code)
    if code:
        return ApiError(409, sentence, code=code)
    return ApiError(500, sentence, type="server_error", code="profiler_failed")


def profiler_timeout(seconds: float) -> ApiError:
    """504: the engine is still at it, and goes on."""
    return ApiError(
        504,
        f"The profiler takes longer than {seconds:g} s (ATOM_PROFILER_TIMEOUT). It goes on, and so does the engine.",
        type="server_error",
        code="profiler_timeout",
    )


def internal_error() -> ApiError:
    """500 without internals; the log has the rest."""
    return ApiError(
        500, "Internal error; the server's log has the details.", type="server_error", code="internal_error"
    )


def error_bytes(error: ApiError, *, anthropic: bool = False, request_id: str = "") -> bytes:
    """The error's JSON body, in OpenAI's shape, or in Anthropic's for /v1/messages."""
    if anthropic:
        kind = _ANTHROPIC_TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
        body: dict[str, object] = {
            "type": "error",
            "error": {"type": kind, "message": error.message},
            "request_id": request_id,
        }
    else:
        body = {
            "error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code},
        }
    return msgspec.json.encode(body)


def error_response(error: ApiError, *, anthropic: bool = False, request_id: str = "") -> Response:
    """The error as a whole response."""
    body = error_bytes(error, anthropic=anthropic, request_id=request_id)
    return Response(body, error.status, error.headers, "application/json")


def shorten(text: str, limit: int = 200) -> str:
    """Text from a client, made fit for a message: bounded, and free of what UTF-8 can not carry."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= limit else clean[:limit] + "…"
