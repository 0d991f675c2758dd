"""The interface between the engine core and whatever runs the model.

The core calls `launch` and `collect` in turn, at most `max_in_flight` launches ahead. Batches run in launch order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass

from atom.model_engine.batch import ScheduledBatch, StepResult
from atom.model_engine.messages import EngineInfo
from atom.sampling_params import AnswerGrammar


@dataclass(frozen=True, slots=True)
class CacheSpace:
    """Size of the paged KV cache that the executor allocated."""

    num_blocks: int
    block_size: int


class Executor(ABC):
    """Runs the model over scheduled batches.

    waits_for_prompts: no step is wanted behind one with prompts before that has ended, since it takes so much longer
    than a decode that requests which arrive meanwhile should not miss the next step.
    owns_process: nothing else computes in this process, so that threads may be bound to cores. Set before `start`.
    """

    max_in_flight: int = 2
    waits_for_prompts: bool = False
    owns_process: bool = False

    @abstractmethod
    def start(self) -> tuple[EngineInfo, CacheSpace]:
        """Load the model, size and allocate the KV cache, warm up. Raises with a message for the user on failure."""

    @abstractmethod
    def launch(self, batch: ScheduledBatch) -> None:
        """Queue one step and return without waiting for the device."""

    @abstractmethod
    def collect(self) -> StepResult:
        """Wait for the oldest launched step and return its result; re-raises what the step raised."""

    @abstractmethod
    def call(self, name: str, arguments: dict[str, str | int | float | bool | None]) -> Future[str]:
        """Begin a named operation (start_profile, stop_profile) without waiting for it; steps go on meanwhile.

        The future's result is JSON text; it raises EngineCallError for a refusal. ValueError on an unknown name.
        """

    def prepare(self, grammar: AnswerGrammar) -> Future[None]:
        """Begin to make ready what sequences with this grammar need; steps go on meanwhile.

        The future raises ValueError with a message for the user when such sequences can not run here.
        """
        refused: Future[None] = Future()
        refused.set_exception(ValueError("this engine can not enforce a grammar"))
        return refused

    @abstractmethod
    def shutdown(self) -> None:
        """Release the device and end every worker. Safe to call twice."""
