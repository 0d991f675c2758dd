from __future__ import annotations

import logging

import pytest

from atom.model_engine.messages import EngineStats
from atom.model_engine.throughput_log import ThroughputLog
from tests.fakes.clock import ManualClock


def test_one_line_an_interval_with_rates_since_the_last(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock(100.0)
    log = ThroughputLog(10.0, clock)
    log.step(EngineStats(generation_tokens=5))
    clock.advance(10.0)
    first = EngineStats(
        num_running=3,
        num_waiting=2,
        num_blocks_total=50,
        num_blocks_used=25,
        prompt_tokens=200,
        cached_prompt_tokens=50,
        generation_tokens=400,
    )
    log.step(first)
    clock.advance(9.9)
    log.step(EngineStats(generation_tokens=500))
    clock.advance(0.1)
    log.step(EngineStats(num_blocks_total=50, prompt_tokens=200, cached_prompt_tokens=50, generation_tokens=600))
    assert caplog.messages == [
        "prompt 15.0 tok/s, generation 40.0 tok/s, running 3, waiting 2, KV cache 50.0%, prefix hits 25.0%",
        "prompt 0.0 tok/s, generation 20.0 tok/s, running 0, waiting 0, KV cache 0.0%, prefix hits 0.0%",
    ]
