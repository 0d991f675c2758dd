# Derived from spec/openapi.yaml by spec/codegen; edit that and run `make generate`.
"""Every operation of the HTTP contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the contract.

    request: name of the body's struct, in the module `atom_spec.<module>`; None without a body. streams: it may answer
    with server-sent events. auth: a key is needed when the server has keys. statuses: every status it may answer with.
    """

    method: Literal["GET", "HEAD", "POST"]
    path: str
    operation_id: str
    tag: str
    request: str | None = None
    module: str | None = None
    streams: bool = False
    auth: bool = True
    statuses: tuple[int, ...] = ()


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/chat/completions",
        "createChatCompletion",
        "chat",
        request="ChatCompletionRequest",
        module="openai",
        streams=True,
        statuses=(200, 400, 401, 404, 405, 413, 415, 429, 500, 503),
    ),
    Route(
        "POST",
        "/v1/completions",
        "createCompletion",
        "completions",
        request="CompletionRequest",
        module="openai",
        streams=True,
        statuses=(200, 400, 401, 404, 405, 413, 415, 429, 500, 503),
    ),
    Route(
        "POST",
        "/v1/messages",
        "createMessage",
        "messages",
        request="MessagesRequest",
        module="anthropic",
        streams=True,
        statuses=(200, 400, 401, 404, 405, 413, 415, 429, 500, 503),
    ),
    Route(
        "POST",
        "/v1/messages/count_tokens",
        "countTokens",
        "messages",
        request="CountTokensRequest",
        module="anthropic",
        statuses=(200, 400, 401, 404, 405, 413, 415, 500, 503),
    ),
    Route(
        "POST",
        "/v1/responses",
        "createResponse",
        "responses",
        request="ResponsesRequest",
        module="responses",
        streams=True,
        statuses=(200, 400, 401, 404, 405, 413, 415, 429, 500, 503),
    ),
    Route("GET", "/v1/models", "listModels", "models", statuses=(200, 401, 405, 500)),
    Route("GET", "/v1/models/{model}", "retrieveModel", "models", statuses=(200, 400, 401, 404, 405, 500)),
    Route(
        "POST",
        "/tokenize",
        "tokenize",
        "tokenizer",
        request="TokenizeRequest",
        module="ops",
        statuses=(200, 400, 401, 404, 405, 413, 415, 500),
    ),
    Route(
        "POST",
        "/detokenize",
        "detokenize",
        "tokenizer",
        request="DetokenizeRequest",
        module="ops",
        statuses=(200, 400, 401, 404, 405, 413, 415, 500),
    ),
    Route("GET", "/tokenizer_info", "getTokenizerInfo", "tokenizer", statuses=(200, 401, 405, 500)),
    Route("GET", "/health", "getHealth", "operations", auth=False, statuses=(200, 400, 405, 500, 503)),
    Route("GET", "/metrics", "getMetrics", "operations", statuses=(200, 401, 405, 500)),
    Route("HEAD", "/metrics", "headMetrics", "operations", statuses=(200, 401, 405, 500)),
    Route("GET", "/debug/mtp_stats", "getMtpStats", "operations", statuses=(200, 401, 405, 500, 503)),
    Route("POST", "/start_profile", "startProfile", "operations", statuses=(200, 400, 401, 405, 409, 500, 503, 504)),
    Route("POST", "/stop_profile", "stopProfile", "operations", statuses=(200, 400, 401, 405, 409, 500, 503, 504)),
    Route("GET", "/status", "getStatus", "operations", statuses=(200, 401, 405, 500)),
    Route("GET", "/", "getPage", "pages", auth=False, statuses=(200, 405, 500)),
    Route("HEAD", "/", "headPage", "pages", auth=False, statuses=(200, 405, 500)),
    Route("GET", "/assets/{name}", "getAsset", "pages", auth=False, statuses=(200, 404, 405, 500)),
    Route("HEAD", "/assets/{name}", "headAsset", "pages", auth=False, statuses=(200, 404, 405, 500)),
    Route("GET", "/docs", "getDocs", "pages", statuses=(200, 401, 405, 500)),
    Route("GET", "/openapi.json", "getOpenapi", "pages", statuses=(200, 401, 405, 500)),
)
