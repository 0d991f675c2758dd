"""What the server's process asks of the interpreter, given back at the end."""

from __future__ import annotations

import gc
import sys

import pytest

from atom.entrypoints.openai.interpreter import tune_interpreter


def test_what_is_loaded_is_frozen_and_threads_get_their_turn_soon() -> None:
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    try:
        tune_interpreter()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold()[0] > thresholds[0]
        assert sys.getswitchinterval() == pytest.approx(0.0005)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
