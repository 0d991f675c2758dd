from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from atom.model_engine.messages import TokenDelta, TokenLogprobs
from atom.model_engine.token_stream import EngineDeadError, TokenStream, merge_deltas


async def soon(awaitable: Awaitable[TokenDelta]) -> TokenDelta:
    return await asyncio.wait_for(awaitable, 120)


def entry(token: int) -> TokenLogprobs:
    return TokenLogprobs(token, -1.0, 1, [], [])


def test_merging_keeps_everything() -> None:
    first = TokenDelta(
        "r", [1], logprobs=[entry(1)], prompt_logprobs=[None, entry(7)], num_cached_tokens=4, queue_time=0.5
    )
    last = TokenDelta("r", [2, 3], "stop", 9, [entry(2), entry(3), entry(9)], None, 4)
    assert merge_deltas([first, last]) == TokenDelta(
        "r", [1, 2, 3], "stop", 9, [entry(1), entry(2), entry(3), entry(9)], [None, entry(7)], 4, None, 0.5
    )
    assert merge_deltas([TokenDelta("r", [1]), TokenDelta("r", [2])]).logprobs is None


def test_a_slow_reader_gets_one_delta_for_all_that_came() -> None:
    async def read() -> list[TokenDelta]:
        stream = TokenStream()
        stream.put(TokenDelta("r", [1]))
        stream.put(TokenDelta("r", [2]))
        first = await stream.next()
        asyncio.get_running_loop().call_soon(stream.put, TokenDelta("r", [3], "length"))
        assert not stream.is_ended
        second = await soon(stream.next())
        assert stream.is_ended
        return [first, second]

    first, second = asyncio.run(read())
    assert (first.token_ids, second.token_ids, second.finish_reason) == ([1, 2], [3], "length")


def test_a_failed_stream_gives_what_came_and_then_the_error() -> None:
    async def read() -> None:
        stream = TokenStream()
        stream.put(TokenDelta("r", [1]))
        stream.fail(EngineDeadError("gone"))
        assert (await stream.next()).token_ids == [1]
        assert not stream.is_ended
        with pytest.raises(EngineDeadError, match="gone"):
            await soon(stream.next())
        assert stream.is_ended

    asyncio.run(read())
