"""The messages between the API process and the engine process.

Everything that crosses the process border is one of these msgspec structs, encoded as msgpack. Owns their shapes; knows
neither sockets (`ipc`) nor text. A union member is told apart by its tag.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from atom.sampling_params import SamplingParams

FinishReason = Literal["stop", "length", "abort", "error"]


class EngineRequest(msgspec.Struct, frozen=True, tag="add", omit_defaults=True):
    """One sequence to generate. `prompt_token_ids` is never cut; a prompt that can not fit comes back as an error.

    arrival_time: seconds of time.monotonic() in the sending process (one host, one clock).
    """

    request_id: str
    prompt_token_ids: list[int]
    sampling: SamplingParams
    arrival_time: float = 0.0
    priority: int = 0
    cache_salt: str = ""


class AbortRequests(msgspec.Struct, frozen=True, tag="abort"):
    """Drop these sequences within one step; unknown ids are ignored. Each live one ends with finish_reason "abort"."""

    request_ids: list[str]


class UtilityCall(msgspec.Struct, frozen=True, tag="call"):
    """A named operation on the engine, such as start_profile; answered by one UtilityReply of the same call_id."""

    call_id: int
    name: str
    arguments: dict[str, str | int | float | bool | None] = {}


class EngineCallError(RuntimeError):
    """A UtilityCall that failed in the engine, which goes on. `code` tells refusals apart, "" is any other failure."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """Stop the engine process. With `drain_timeout` > 0 running sequences may finish for so many seconds."""

    drain_timeout: float = 0.0


ToEngine = EngineRequest | AbortRequests | UtilityCall | Shutdown


class TokenLogprobs(msgspec.Struct, frozen=True, array_like=True):
    """Log probability of one token and of the most likely ones at its position, both lists sorted, highest first.

    `rank` of the token is 1-based. When a top-N list was asked for, `top_ids` holds the N most likely tokens (the token
    itself is not added when it is not among them).
    """

    token_id: int
    logprob: float
    rank: int
    top_ids: list[int]
    top_logprobs: list[float]


class TokenDelta(msgspec.Struct, frozen=True, array_like=True):
    """New tokens of one sequence, and, on the last delta, why it ended.

    stop_token: the id that ended it (it is not in `token_ids`), None when length or a caller ended it.
    prompt_logprobs comes once, with the first delta: one entry a prompt token, the first None. queue_time too: seconds
    from the request's arrival to its first step.
    """

    request_id: str
    token_ids: list[int]
    finish_reason: FinishReason | None = None
    stop_token: int | None = None
    logprobs: list[TokenLogprobs] | None = None
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    num_cached_tokens: int = 0
    error: str | None = None
    queue_time: float | None = None


class EngineInfo(msgspec.Struct, frozen=True):
    """What the API process must know of a started engine."""

    model: str
    architecture: str
    device: str
    dtype: str
    max_model_len: int
    vocab_size: int
    eos_token_ids: list[int]
    block_size: int
    num_blocks: int
    max_num_seqs: int
    kernels: dict[str, str] = {}


class EngineStats(msgspec.Struct, frozen=True):
    """Gauges and counters of the engine at one moment; counters only grow. Names follow spec/metrics.yaml."""

    num_running: int = 0
    num_waiting: int = 0
    num_partial_prefills: int = 0
    num_blocks_total: int = 0
    num_blocks_used: int = 0
    num_blocks_cached: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    generation_tokens: int = 0
    preemptions: int = 0
    steps: int = 0
    requests_finished: int = 0
    requests_aborted: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0


class EngineReady(msgspec.Struct, frozen=True, tag="ready"):
    """The engine has started and takes requests."""

    info: EngineInfo


class StepOutput(msgspec.Struct, frozen=True, tag="step"):
    """All deltas of one engine step."""

    deltas: list[TokenDelta]
    stats: EngineStats | None = None


class UtilityReply(msgspec.Struct, frozen=True, tag="reply"):
    """Answer of a UtilityCall: `result` is JSON text, or `error` says why there is none, `code` as EngineCallError."""

    call_id: int
    result: str | None = None
    error: str | None = None
    code: str = ""


class EngineDead(msgspec.Struct, frozen=True, tag="dead"):
    """The last message of an engine that failed. `error` is one line without a stack trace."""

    error: str


FromEngine = EngineReady | StepOutput | UtilityReply | EngineDead
