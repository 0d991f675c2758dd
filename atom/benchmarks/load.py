"""When requests are sent: arrival times and the bound on requests in flight.

Owns the schedule and the run's duration. Does not know what a request is.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import numpy as np

from atom.benchmarks.http_client import clock

Request = TypeVar("Request")
Answer = TypeVar("Answer")


def arrival_times(number: int, rate: float, burstiness: float, seed: int) -> list[float]:
    """Seconds from the start at which to send each of `number` requests; the first one at once.

    The gaps are gamma distributed with mean 1 / rate and shape `burstiness`: 1 is a Poisson process, less comes in
    bursts, more is steadier. An infinite rate sends all at once.
    """
    if math.isinf(rate):
        return [0.0] * number
    generator = np.random.default_rng((seed, 3))
    gaps = generator.gamma(shape=burstiness, scale=1.0 / (rate * burstiness), size=max(number - 1, 0))
    times: list[float] = np.concatenate(([0.0], np.cumsum(gaps)))[:number].tolist()
    return times


async def run_load(
    requests: Sequence[Request],
    send: Callable[[Request], Awaitable[Answer]],
    times: Sequence[float],
    max_concurrency: int | None = None,
) -> tuple[list[Answer], float]:
    """Send each request at its time, or when there is room, and wait for all. Answers in order, and seconds taken.

    Times count from the start, so that a late wake-up delays one request and not all that follow. Waiting for room is
    not part of a request's own times: `send` is only called then.
    """
    room = asyncio.Semaphore(max_concurrency) if max_concurrency else None

    async def send_in_turn(request: Request) -> Answer:
        if room is None:
            return await send(request)
        async with room:
            return await send(request)

    start = clock()
    tasks: list[asyncio.Task[Answer]] = []
    for request, time in zip(requests, times, strict=True):
        wait = start + time - clock()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(send_in_turn(request)))
    answers = await asyncio.gather(*tasks)
    return answers, clock() - start
