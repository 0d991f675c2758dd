"""The choices of an answer side by side: who begins when, and how all of them end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from atom.entrypoints.openai.errors import ApiError
from atom.entrypoints.openai.generation import SequenceRun
from atom.entrypoints.openai.pipeline import AnswerPipeline
from atom.entrypoints.openai.streaming_dispatch import merged_steps
from atom.model_engine.engine_client import EngineClient
from atom.model_engine.messages import EngineRequest, TokenDelta
from atom.sampling_params import SamplingParams
from tests.fakes.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
BLOCK = 4


class Engine:
    """Writes down what happens to each request: begun, a step, left. `failing`: ids that fail before their first."""

    def __init__(self, failing: frozenset[str] = frozenset()) -> None:
        self.info = SimpleNamespace(block_size=BLOCK)
        self.log: list[str] = []
        self._failing = failing

    async def generate(self, request: EngineRequest) -> AsyncGenerator[TokenDelta, None]:
        name = request.request_id
        self.log.append(f"{name} begins")
        try:
            for place in range(3):
                await asyncio.sleep(0)
                if name in self._failing:
                    yield TokenDelta(name, [], finish_reason="error", error="no")
                    return
                self.log.append(f"{name} step {place}")
                yield TokenDelta(name, [ord("a") + place], finish_reason="length" if place == 2 else None)
        finally:
            self.log.append(f"{name} left")


def a_run(
    index: int, name: str, prompt_index: int, *, length: int = BLOCK + 1, prompt_logprobs: int | None = None
) -> SequenceRun:
    request = EngineRequest(name, [65] * length, SamplingParams(prompt_logprobs=prompt_logprobs))
    return SequenceRun(index, request, AnswerPipeline.for_completion(TOKENIZER), prompt_index=prompt_index)


def collect(engine: Engine, runs: list[SequenceRun]) -> list[tuple[int, Any]]:
    async def main() -> list[tuple[int, Any]]:
        return [(run.index, step) async for run, step in merged_steps(runs, cast(EngineClient, engine))]

    return asyncio.run(main())


def test_the_choices_of_a_prompt_begin_when_its_first_has_read_it() -> None:
    engine = Engine()
    runs = [a_run(0, "A0", 0), a_run(1, "A1", 0), a_run(2, "A2", 0), a_run(3, "B0", 1), a_run(4, "B1", 1)]
    steps = collect(engine, runs)
    assert sorted(index for index, _ in steps) == sorted([0, 1, 2, 3, 4] * 3)
    assert engine.log.index("B0 begins") < engine.log.index("A0 step 0"), "prompts do not wait for each other"
    for first, other in (("A0", "A1"), ("A0", "A2"), ("B0", "B1")):
        begins = engine.log.index(f"{other} begins")
        assert engine.log.index(f"{first} step 0") < begins < engine.log.index(f"{first} left")


@pytest.mark.parametrize(("prompt_logprobs", "waits"), [(None, False), (0, True)])
def test_where_there_is_nothing_to_share_all_begin_at_once(prompt_logprobs: int | None, waits: bool) -> None:
    """A prompt without a full block before its last token; but its scores are the first choice's to get."""
    engine = Engine()
    collect(engine, [a_run(0, "A0", 0, length=BLOCK, prompt_logprobs=prompt_logprobs), a_run(1, "A1", 0, length=BLOCK)])
    assert (engine.log.index("A0 step 0") < engine.log.index("A1 begins")) is waits


def test_a_prompt_that_can_not_be_read_is_not_tried_again() -> None:
    engine = Engine(frozenset(["A0"]))
    with pytest.raises(ApiError, match="no"):
        collect(engine, [a_run(0, "A0", 0), a_run(1, "A1", 0)])
    assert engine.log == ["A0 begins", "A0 left"]


def test_a_failure_ends_the_others() -> None:
    engine = Engine(frozenset(["B0"]))
    with pytest.raises(ApiError):
        collect(engine, [a_run(0, "A0", 0), a_run(1, "A1", 0), a_run(2, "B0", 1)])
    begun = {line.split()[0] for line in engine.log if line.endswith("begins")}
    assert begun == {line.split()[0] for line in engine.log if line.endswith("left")}
