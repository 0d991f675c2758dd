"""The status line of a working engine: tokens per second, sequences, cache use. Knows only EngineStats."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from atom.model_engine.messages import EngineStats

logger = logging.getLogger(__name__)


class ThroughputLog:
    """Logs one line every `interval` seconds in which steps ran."""

    def __init__(self, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.interval = interval
        self._clock = clock
        self._since = clock()
        self._before = EngineStats()

    def step(self, stats: EngineStats) -> None:
        """Take the stats after a step."""
        now = self._clock()
        elapsed = now - self._since
        if elapsed < self.interval:
            return
        before, self._before, self._since = self._before, stats, now
        prompt = stats.prompt_tokens - before.prompt_tokens
        cached = stats.cached_prompt_tokens - before.cached_prompt_tokens
        logger.info(
            "prompt %.1f tok/s, generation %.1f tok/s, running %d, waiting %d, KV cache %.1f%%, prefix hits %.1f%%",
            (prompt - cached) / elapsed,
            (stats.generation_tokens - before.generation_tokens) / elapsed,
            stats.num_running,
            stats.num_waiting,
            100.0 * stats.num_blocks_used / max(stats.num_blocks_total, 1),
            100.0 * cached / max(prompt, 1),
        )
