"""The choices of one answer, generated side by side, as one sequence of steps.

Owns the merging, that the choices of one prompt share its prefill, and that all choices end when one fails or when
nobody listens any more. Knows neither text nor JSON.
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
    """The steps of all choices as they come. The first failure ends them all; so does closing the iterator.

    The choices of one prompt begin behind the first step of its first choice: by then the prompt's blocks are in the
    prefix cache, and the others compute only what fills no block. Where there is nothing to share, all begin at once.
    """
    if len(runs) == 1:
        async with aclosing(runs[0].steps(engine)) as steps:
            async for step in steps:
                yield runs[0], step
        return
    queue: asyncio.Queue[tuple[SequenceRun, Step | Exception]] = asyncio.Queue()
    is_read: dict[int, asyncio.Event] = {}  # by prompt: whether the engine has read it, as far as that matters

    async def pump(run: SequenceRun, read: asyncio.Event, leads: bool) -> None:
        try:
            if not leads:
                await read.wait()
            async with aclosing(run.steps(engine)) as steps:
                async for step in steps:
                    read.set()
                    queue.put_nowait((run, step))
        except Exception as error:
            queue.put_nowait((run, error))

    tasks = []
    for run in runs:
        leads = run.prompt_index not in is_read
        read = is_read.setdefault(run.prompt_index, asyncio.Event())
        if leads and not _has_to_share(run, engine):
            read.set()
        tasks.append(asyncio.create_task(pump(run, read, leads)))
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


def _has_to_share(run: SequenceRun, engine: EngineClient) -> bool:
    """Whether later choices of the prompt reuse what this one computes: its full blocks, or its prompt's scores."""
    request = run.request
    return request.sampling.prompt_logprobs is not None or len(request.prompt_token_ids) > engine.info.block_size
