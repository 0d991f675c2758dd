"""Operations: health, metrics, the tokenizer, profiling, draft statistics.

Owns these endpoints; each is small. None of them holds up the event loop.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
from atom_spec.ops import (
    DetokenizeRequest,
    DetokenizeResponse,
    Health,
    MtpStats,
    ProfileResponse,
    ProfileTrace,
    TokenizeResponse,
    TokenizerInfo,
)
from starlette.requests import Request
from starlette.responses import Response

from atom import envs
from atom.entrypoints.openai.endpoint import Handler
from atom.entrypoints.openai.errors import bad_request, profiler_refused, profiler_timeout, unavailable
from atom.entrypoints.openai.ids import new_completion_id
from atom.entrypoints.openai.limits import check_token_ids
from atom.entrypoints.openai.metrics import CONTENT_TYPE
from atom.model_engine.messages import EngineCallError, EngineRequest
from atom.model_engine.token_stream import EngineDeadError
from atom.sampling_params import SamplingParams

if TYPE_CHECKING:
    from atom_spec.ops import TokenizeRequest

    from atom.entrypoints.openai.serving import ServingContext

# A deep health check that takes longer than this has failed.
DEEP_HEALTH_TIMEOUT = 10.0


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


async def get_health(serving: ServingContext, call: Request, body: None) -> Response:
    """Whether requests can be answered; with ?deep=1, by answering one."""
    deep = call.query_params.get("deep", "0")
    if deep not in ("0", "1"):
        raise bad_request("deep must be 0 or 1", "deep")
    if not serving.engine.is_alive:
        raise unavailable("The engine has stopped.", "engine_dead")
    if serving.is_draining:
        raise unavailable("The server is shutting down.", "shutting_down")
    if deep == "1":
        try:
            async with asyncio.timeout(DEEP_HEALTH_TIMEOUT):
                await _generate_one_token(serving)
        except TimeoutError:
            raise unavailable(f"The engine gave no token within {DEEP_HEALTH_TIMEOUT:g} s.", "engine_stuck") from None
        except EngineDeadError:
            raise unavailable("The engine has stopped.", "engine_dead") from None
    return _json(Health(status="ok"))


async def _generate_one_token(serving: ServingContext) -> None:
    sampling = SamplingParams(temperature=0.0, max_tokens=1, ignore_eos=True)
    request = EngineRequest(f"health-{new_completion_id()}", [serving.empty_prompt_id], sampling)
    async with aclosing(serving.engine.generate(request)) as deltas:
        async for delta in deltas:
            if delta.finish_reason == "error":
                raise unavailable("The engine could not generate a token.", "engine_failing")


async def get_metrics(serving: ServingContext, call: Request, body: None) -> Response:
    """Prometheus text."""
    return Response(serving.metrics.render(), media_type=CONTENT_TYPE)


async def get_mtp_stats(serving: ServingContext, call: Request, body: None) -> Response:
    """Draft tokens: there are none before speculative decoding exists, and the answer says so."""
    stats = serving.engine.stats
    rate = stats.accepted_tokens / stats.draft_tokens if stats.draft_tokens else 0.0
    return _json(
        MtpStats(
            enabled=False,
            total_draft_tokens=stats.draft_tokens,
            total_accepted_tokens=stats.accepted_tokens,
            acceptance_rate=rate,
            average_tokens_per_forward=1.0 if stats.steps else 0.0,
            distribution={},
            distribution_percent={},
        )
    )


async def start_profile(serving: ServingContext, call: Request, body: None) -> Response:
    """Begin a trace."""
    await _call_profiler(serving, "start_profile")
    return _json(ProfileResponse(message="The profiler is running."))


async def stop_profile(serving: ServingContext, call: Request, body: None) -> Response:
    """End the trace and write it; the answer comes when the files are there."""
    traces = msgspec.convert(await _call_profiler(serving, "stop_profile"), list[ProfileTrace])
    return _json(ProfileResponse(message="The profiler has stopped; its traces are written.", traces=traces))


async def _call_profiler(serving: ServingContext, name: str) -> Any:
    seconds = envs.ATOM_PROFILER_TIMEOUT
    try:
        async with asyncio.timeout(seconds):
            return await serving.engine.call(name)
    except TimeoutError:
        raise profiler_timeout(seconds) from None
    except EngineCallError as error:
        raise profiler_refused(str(error), error.code) from None
    except EngineDeadError:
        raise unavailable("The engine has stopped.", "engine_dead") from None


async def tokenize(serving: ServingContext, call: Request, body: TokenizeRequest) -> Response:
    """Text to ids."""
    serving.check_model(body.model)
    add_special_tokens = body.add_special_tokens is not False
    ids = await serving.in_background(
        len(body.prompt), lambda: serving.tokenizer.encode(body.prompt, add_special_tokens)
    )
    return _json(TokenizeResponse(tokens=ids, count=len(ids), max_model_len=serving.max_model_len))


async def detokenize(serving: ServingContext, call: Request, body: DetokenizeRequest) -> Response:
    """Ids to text."""
    serving.check_model(body.model)
    check_token_ids(body.tokens, serving.vocab_size, "tokens")
    text = await serving.in_background(len(body.tokens), lambda: serving.tokenizer.decode(body.tokens, False))
    return _json(DetokenizeResponse(prompt=text))


async def get_tokenizer_info(serving: ServingContext, call: Request, body: None) -> Response:
    """What a client without a tokenizer of its own must know."""
    tokenizer = serving.tokenizer
    return _json(
        TokenizerInfo(
            eos_token=tokenizer.eos_token,
            bos_token=tokenizer.bos_token,
            pad_token=tokenizer.pad_token,
            chat_template=serving.chat_template,
            vocab_size=serving.vocab_size,
            max_model_len=serving.max_model_len,
        )
    )


HANDLERS: dict[str, Handler] = {
    "getHealth": get_health,
    "getMetrics": get_metrics,
    "headMetrics": get_metrics,
    "getMtpStats": get_mtp_stats,
    "startProfile": start_profile,
    "stopProfile": stop_profile,
    "tokenize": tokenize,
    "detokenize": detokenize,
    "getTokenizerInfo": get_tokenizer_info,
}
