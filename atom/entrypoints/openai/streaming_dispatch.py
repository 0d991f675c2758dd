"""The choices of one answer, generated side by side, as one sequence of steps.

Owns the merging, and that all choices end when one fails or when nobody listens any more. Knows neither text nor JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from atom.entrypoints.openai.generation import SequenceRun, Step
from atom.model_engine.engine_client import EngineClient


async def merged_steps(
    runs: Sequence[SequenceRun], engine: EngineClient
) -> AsyncGenerator[tuple[SequenceRun, Step], None]:
    """The steps of all choices as they come. The first failure ends them all; so does closing the iterator."""
    if len(runs) == 1:
        async with aclosing(runs[0].steps(engine)) as steps:
            async for step in steps:
                yield runs[0], step
        return
    queue: asyncio.Queue[tuple[SequenceRun, Step | Exception]] = asyncio.Queue()

    async def pump(run: SequenceRun) -> None:
        try:
            async with aclosing(run.steps(engine)) as steps:
                async for step in steps:
                    queue.put_nowait((run, step))
        except Exception as error:
            queue.put_nowait((run, error))

    tasks = [asyncio.create_task(pump(run)) for run in runs]
    num_running = len(runs)
    try:
        while num_running:
            run, got = await queue.get()
            if isinstance(got, Exception):
                raise got
            num_running -= got.finish_reason is not None
            yield run, got
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
