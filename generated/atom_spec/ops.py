# Derived from spec/openapi.yaml by spec/codegen; edit that and run `make generate`.
"""Requests and answers of the operations and tokenizer endpoints, as msgspec structs."""

from __future__ import annotations
from msgspec import Meta, Struct, UNSET, UnsetType
from typing import Annotated, Literal, TypeAlias


class ChatStatus(Struct, kw_only=True):
    tool_call_format: str | None
    reasoning_dialect: str | None
    thinking_switch: str | None
    reasoning_efforts: list[str]


class DetokenizeRequest(Struct, kw_only=True):
    tokens: list[DetokenizeRequestToken]
    model: str | None = None


DetokenizeRequestToken: TypeAlias = Annotated[int, Meta(ge=0, le=2147483647)]


class DetokenizeResponse(Struct, kw_only=True):
    prompt: str


class DurationTotal(Struct, kw_only=True):
    count: int
    seconds: float


class Health(Struct, kw_only=True):
    status: Literal["ok"] = "ok"


class LoadStatus(Struct, kw_only=True):
    requests_running: int
    requests_waiting: int
    kv_cache_blocks_used: int
    kv_cache_blocks_total: int
    prompt_tokens: int
    cached_prompt_tokens: int
    generation_tokens: int
    time_to_first_token: DurationTotal
    inter_token_latency: DurationTotal


class MtpStats(Struct, kw_only=True):
    enabled: bool
    total_draft_tokens: int
    total_accepted_tokens: int
    acceptance_rate: float
    average_tokens_per_forward: float
    distribution: dict[str, int]
    distribution_percent: dict[str, float]


class ProfileResponse(Struct, kw_only=True):
    status: Literal["success"] = "success"
    message: str
    traces: list[ProfileTrace] | UnsetType = UNSET


class ProfileTrace(Struct, kw_only=True):
    trace_dir: str
    file: str
    elapsed: float


class ServerStatus(Struct, kw_only=True):
    state: Literal["ok", "draining", "dead"]
    version: str
    models: list[str]
    architecture: str
    device: str
    dtype: str
    max_model_len: int
    kernels: dict[str, str]
    chat: ChatStatus | None
    load: LoadStatus


class TokenizeRequest(Struct, kw_only=True):
    prompt: str
    model: str | None = None
    add_special_tokens: bool | None = None


class TokenizeResponse(Struct, kw_only=True):
    tokens: list[int]
    count: int
    max_model_len: int


class TokenizerInfo(Struct, kw_only=True):
    eos_token: str | None
    bos_token: str | None
    pad_token: str | None
    chat_template: str | None
    vocab_size: int
    max_model_len: int


# What holds for a field that a request leaves out, and that the model's own files do not set.
DEFAULTS: dict[str, dict[str, bool | int | float | str]] = {"TokenizeRequest": {"add_special_tokens": True}}
