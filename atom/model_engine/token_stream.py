"""The deltas of one request on their way to whoever reads them.

A reader that is slower than the engine gets what has come meanwhile as one delta. Knows neither sockets nor requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from atom.model_engine.messages import TokenDelta, TokenLogprobs


class EngineDeadError(RuntimeError):
    """The engine is gone; nothing in flight will be answered."""


class TokenStream:
    """One writer, one reader, one event loop.

    is_complete: the last delta has come, or the stream has failed. is_ended: the reader knows. is_abandoned: the reader
    left before that.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self.is_ended = False
        self.is_abandoned = False
        self._deltas: list[TokenDelta] = []
        self._error: EngineDeadError | None = None
        self._reader: asyncio.Future[None] | None = None

    def put(self, delta: TokenDelta) -> None:
        """Add a delta and wake the reader."""
        self._deltas.append(delta)
        self.is_complete = delta.finish_reason is not None
        self._wake()

    def fail(self, error: EngineDeadError) -> None:
        """End the stream with `error`, after the deltas that have come."""
        self._error = error
        self.is_complete = True
        self._wake()

    async def next(self) -> TokenDelta:
        """The next delta; everything that has come, merged. Raises EngineDeadError once the stream has failed."""
        while not self._deltas:
            if self._error is not None:
                self.is_ended = True
                raise self._error
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        deltas, self._deltas = self._deltas, []
        delta = deltas[0] if len(deltas) == 1 else merge_deltas(deltas)
        self.is_ended = delta.finish_reason is not None
        return delta

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


def merge_deltas(deltas: Sequence[TokenDelta]) -> TokenDelta:
    """Consecutive deltas of one request as one."""
    last = deltas[-1]
    logprobs: list[TokenLogprobs] | None = None
    if any(delta.logprobs is not None for delta in deltas):
        logprobs = [entry for delta in deltas for entry in delta.logprobs or ()]
    return TokenDelta(
        request_id=last.request_id,
        token_ids=[token for delta in deltas for token in delta.token_ids],
        finish_reason=last.finish_reason,
        stop_token=last.stop_token,
        logprobs=logprobs,
        prompt_logprobs=next((d.prompt_logprobs for d in deltas if d.prompt_logprobs is not None), None),
        num_cached_tokens=last.num_cached_tokens,
        error=last.error,
        queue_time=next((d.queue_time for d in deltas if d.queue_time is not None), None),
    )
