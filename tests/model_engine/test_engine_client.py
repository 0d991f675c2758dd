"""An engine in a process of its own: answers, aborts, crashes, shutdown. The model is the uniform executor."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import psutil
import pytest

from atom.model_engine.engine_client import (
    EngineCallError,
    EngineClient,
    EngineDeadError,
    EngineStartError,
    ProcessEngineClient,
    describe_exit,
)
from atom.model_engine.messages import EngineRequest, TokenDelta
from atom.sampling_params import SamplingParams
from tests.fakes.uniform_executor import UniformConfig, oracle

# Seconds after which something that has to happen has failed to; far more than any machine needs.
PATIENCE = 200.0
EXECUTOR = "tests.fakes.uniform_executor:UniformExecutor"
SLOW = UniformConfig(step_seconds=0.02, max_model_len=2000, num_blocks=2000)


def client_of(config: UniformConfig) -> ProcessEngineClient:
    return ProcessEngineClient(config, EXECUTOR)


@contextlib.asynccontextmanager
async def started(config: UniformConfig) -> AsyncIterator[ProcessEngineClient]:
    client = client_of(config)
    await client.start()
    try:
        yield client
    finally:
        await client.shutdown()
        assert not psutil.pid_exists(client.pid or 0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), PATIENCE))


def request(name: str, prompt: list[int], **sampling: Any) -> EngineRequest:
    return EngineRequest(name, prompt, SamplingParams(**sampling), time.monotonic())


async def tokens_of(deltas: AsyncIterator[TokenDelta]) -> list[int]:
    return [token async for delta in deltas for token in delta.token_ids]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


async def raises_dead(awaitable: Awaitable[object]) -> str:
    with pytest.raises(EngineDeadError) as caught:
        await awaitable
    return str(caught.value)


def test_requests_in_parallel_each_get_their_own() -> None:
    async def test() -> None:
        async with started(UniformConfig(num_blocks=40)) as client:
            checked: EngineClient = client
            assert checked.info.vocab_size == 97
            assert checked.is_alive
            prompts = {str(index): [index, *range(index)] for index in range(20)}
            answers = await asyncio.gather(
                *(tokens_of(client.generate(request(name, prompt, max_tokens=15))) for name, prompt in prompts.items())
            )
            for prompt, answer in zip(prompts.values(), answers, strict=True):
                assert answer == oracle(prompt, 15, 97)
            assert client.stats.requests_finished == 20
            assert client.stats.num_blocks_used == 0

    run(test)


def test_a_request_that_can_not_run_gets_an_error_delta() -> None:
    async def test() -> None:
        async with started(UniformConfig()) as client:
            [delta] = [delta async for delta in client.generate(request("a", [1] * 300))]
            assert delta.finish_reason == "error"
            assert delta.error is not None
            assert "300 tokens" in delta.error

    run(test)


def test_closing_the_iterator_frees_the_blocks() -> None:
    async def test() -> None:
        async with started(SLOW) as client:
            deltas = client.generate(request("a", [1, 2, 3], max_tokens=1500))
            await anext(deltas)
            await until(lambda: client.stats.num_running == 1)
            assert client.stats.num_blocks_used > 0
            await deltas.aclose()
            await until(lambda: client.stats.requests_aborted == 1)
            assert client.stats.num_blocks_used == client.stats.num_running == 0
            steps = client.stats.steps
            assert await tokens_of(client.generate(request("a", [5], max_tokens=3))) == oracle([5], 3, 97)
            assert client.stats.steps <= steps + 3 + 2  # those of the second, and what was in flight of the first

    run(test)


def test_an_id_is_free_again_only_after_its_last_delta() -> None:
    async def test() -> None:
        async with started(SLOW) as client:
            deltas = client.generate(request("a", [1], max_tokens=1500))
            await anext(deltas)
            await deltas.aclose()
            with pytest.raises(ValueError, match="'a' is already in use"):
                await anext(client.generate(request("a", [2])))
            await until(lambda: not client._streams)
            assert await tokens_of(client.generate(request("a", [2], max_tokens=3))) == oracle([2], 3, 97)

    run(test)


def test_thirty_aborts_at_once_leave_nothing_behind() -> None:
    async def test() -> None:
        async with started(SLOW) as client:
            streams = [client.generate(request(str(index), [index], max_tokens=1500)) for index in range(30)]
            readers = [asyncio.ensure_future(tokens_of(stream)) for stream in streams]
            await until(lambda: client.stats.num_running == 8 and client.stats.num_waiting == 22)
            for reader in readers:
                reader.cancel()
            await until(lambda: client.stats.requests_aborted == 30)
            stats = client.stats
            assert (stats.num_running, stats.num_waiting, stats.num_blocks_used) == (0, 0, 0)
            assert client._streams == {}

    run(test)


def test_an_abort_by_id_ends_the_stream() -> None:
    async def test() -> None:
        async with started(SLOW) as client:
            deltas = client.generate(request("a", [1, 2, 3], max_tokens=1500))
            await anext(deltas)
            client.abort("a")
            client.abort("unknown")
            assert [delta async for delta in deltas][-1].finish_reason == "abort"

    run(test)


def test_an_id_in_use_is_refused() -> None:
    async def test() -> None:
        async with started(SLOW) as client:
            deltas = client.generate(request("a", [1], max_tokens=1500))
            await anext(deltas)
            with pytest.raises(ValueError, match="'a' is already in use"):
                await anext(client.generate(request("a", [1])))
            await deltas.aclose()

    run(test)


def test_calls() -> None:
    async def test() -> None:
        async with started(UniformConfig()) as client:
            assert await client.call("echo", a=1, b="c") == {"a": 1, "b": "c"}
            with pytest.raises(EngineCallError, match="no operation is named 'other'"):
                await client.call("other")
            assert await client.call("echo") == {}
            with pytest.raises(EngineCallError, match=r"^not now$") as caught:
                await client.call("refuse", code="busy")
            assert caught.value.code == "busy"

    run(test)


def test_a_call_that_takes_long_holds_up_neither_requests_nor_other_calls() -> None:
    async def test() -> None:
        async with started(UniformConfig()) as client:
            long = asyncio.ensure_future(client.call("wait"))
            given_up = asyncio.ensure_future(client.call("wait"))
            assert await tokens_of(client.generate(request("a", [1], max_tokens=5))) == oracle([1], 5, 97)
            assert await client.call("echo", a=1) == {"a": 1}
            given_up.cancel()
            assert not long.done()
            assert await client.call("go_on") == 2
            assert await long == "at last"
            assert await client.call("echo") == {}

    run(test)


def test_a_shutdown_ends_open_calls() -> None:
    async def test() -> None:
        async with started(UniformConfig()) as client:
            long = asyncio.ensure_future(raises_dead(client.call("wait")))
            assert await client.call("echo") == {}
            await client.shutdown()
            assert await long == "the engine is shutting down"

    run(test)


@pytest.mark.parametrize("how", ["kill", "exit", "raise"])
def test_a_dead_engine_fails_everything_in_flight(how: str) -> None:
    async def test() -> None:
        async with started(SLOW) as client:
            streams = [client.generate(request(str(index), [index], max_tokens=1500)) for index in range(3)]
            for stream in streams:
                await anext(stream)
            readers = [asyncio.ensure_future(raises_dead(tokens_of(stream))) for stream in streams]
            if how == "kill":
                os.kill(client.pid or 0, signal.SIGKILL)
            elif how == "exit":
                readers.append(asyncio.ensure_future(raises_dead(client.call("exit"))))
            else:
                await client.call("fail")
            [message] = set(await asyncio.gather(*readers))
            expected = {
                "kill": r"the engine process ended \(killed by SIGKILL\)",
                "exit": r"the engine process ended \(exit code 3\)",
                "raise": r"RuntimeError: step \d+ failed, as it was told to",
            }
            assert re.fullmatch(expected[how], message)
            assert client.died.is_set() and not client.is_alive
            assert await raises_dead(tokens_of(client.generate(request("late", [1])))) == message
            assert await raises_dead(client.call("echo")) == message

    run(test)


def test_a_start_error_is_passed_on_and_leaves_no_process() -> None:
    async def test() -> None:
        client = client_of(UniformConfig(fail_at_start="the KV cache needs 3 GiB, there are 2 (--kv-cache-memory)"))
        with pytest.raises(EngineStartError, match=r"^the KV cache needs 3 GiB, there are 2 \(--kv-cache-memory\)$"):
            await client.start()
        assert not client.is_alive
        assert not psutil.pid_exists(client.pid or 0)
        with pytest.raises(EngineDeadError):
            _ = client.info

    run(test)


def test_a_request_sent_as_soon_as_the_engine_is_ready_is_not_lost() -> None:
    async def test() -> None:
        client = ProcessEngineClient(UniformConfig(), EXECUTOR, "tests.fakes.late_engine:run_late")
        await client.start()
        assert await tokens_of(client.generate(request("a", [1], max_tokens=5))) == oracle([1], 5, 97)
        await client.shutdown()

    run(test)


def test_an_engine_that_is_ready_and_gone_says_so() -> None:
    async def test() -> None:
        client = ProcessEngineClient(UniformConfig(), EXECUTOR, "tests.fakes.late_engine:run_gone")
        with pytest.raises(EngineStartError, match=r"ended while it started \(exit code 4\)"):
            await client.start()
        assert not psutil.pid_exists(client.pid or 0)

    run(test)


def test_an_engine_that_just_ends_while_it_starts_says_so() -> None:
    async def test() -> None:
        with pytest.raises(EngineStartError, match=r"ended while it started \(exit code 7\)"):
            await client_of(UniformConfig(fail_at_start="exit")).start()

    run(test)


def test_a_start_that_is_cancelled_leaves_no_process() -> None:
    async def test() -> None:
        client = client_of(UniformConfig(fail_at_start="hang"))
        start = asyncio.ensure_future(client.start())
        await until(lambda: client.pid is not None)
        await asyncio.sleep(0.3)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        assert not psutil.pid_exists(client.pid or 0)

    run(test)


def test_shutdown_lets_running_requests_finish_within_the_drain_timeout() -> None:
    async def test() -> None:
        client = client_of(SLOW)
        await client.start()
        deltas = client.generate(request("a", [1], max_tokens=20))
        begun = (await anext(deltas)).token_ids
        stop = asyncio.ensure_future(client.shutdown(PATIENCE))
        await asyncio.sleep(0)
        assert not client.is_alive
        assert await raises_dead(tokens_of(client.generate(request("b", [1])))) == "the engine is shutting down"
        assert begun + await tokens_of(deltas) == oracle([1], 20, 97)
        await stop
        await client.shutdown()
        assert not client.died.is_set()
        assert not psutil.pid_exists(client.pid or 0)

    run(test)


def test_shutdown_aborts_what_is_left_after_the_drain_timeout() -> None:
    async def test() -> None:
        client = client_of(SLOW)
        await client.start()
        deltas = client.generate(request("a", [1], max_tokens=1500))
        await anext(deltas)
        stop = asyncio.ensure_future(client.shutdown(0.1))
        assert [delta async for delta in deltas][-1].finish_reason == "abort"
        await stop

    run(test)


def test_before_the_start_there_is_no_engine() -> None:
    async def test() -> None:
        client = client_of(UniformConfig())
        assert await raises_dead(tokens_of(client.generate(request("a", [1])))) == "the engine is not started"
        client.abort("a")
        await client.shutdown()

    run(test)


def test_exit_codes_read_as_words() -> None:
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-9) == "killed by SIGKILL"
    assert describe_exit(-200) == "killed by signal 200"
