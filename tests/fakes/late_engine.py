"""An engine process that says it is ready before it listens: the two directions of the sockets connect on their own."""

from __future__ import annotations

import time
from typing import Any

from atom.model_engine.engine_core import EngineCore, run
from atom.model_engine.ipc import EngineAddresses, EngineSockets
from atom.model_engine.messages import EngineReady

LATE_BY = 0.3


def run_late(config: Any, executor: str, addresses: EngineAddresses) -> None:
    """As the engine's own entry, with its first word sent `LATE_BY` seconds before it listens."""
    _first_word(config, executor, addresses)
    time.sleep(LATE_BY)
    run(config, executor, addresses)


def run_gone(config: Any, executor: str, addresses: EngineAddresses) -> None:
    """Ready, and gone without ever having listened."""
    _first_word(config, executor, addresses)
    raise SystemExit(4)


def _first_word(config: Any, executor: str, addresses: EngineAddresses) -> None:
    sockets = EngineSockets(EngineAddresses("inproc://nowhere", addresses.from_engine))
    core = EngineCore.create(config, executor)
    sockets.send(EngineReady(core.info))
    core.shutdown()
    sockets.close()
