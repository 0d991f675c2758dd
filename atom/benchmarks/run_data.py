"""Everything one run produced, before it is printed, written or drawn.

Owns the record that report, result file and plots are made from, and its few derived figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atom.benchmarks.backend_request_func import RequestFuncOutput
from atom.benchmarks.metrics import BenchmarkMetrics
from atom.benchmarks.prompts import SampleRequest
from atom.benchmarks.speculation import Speculation


@dataclass(frozen=True, slots=True)
class LengthMismatch:
    """Prompts whose count of tokens was another than expected. mean: counted minus expected, over all compared."""

    number: int
    compared: int
    mean: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run. requests and outputs correspond.

    date: of its start, YYYYmmdd-HHMMSS. start: reading of the clock when the load began. num_recounted: answers whose
    tokens the client's tokenizer counted, since the server did not.
    """

    date: str
    model: str
    tokenizer: str
    start: float
    requests: Sequence[SampleRequest]
    outputs: Sequence[RequestFuncOutput]
    metrics: BenchmarkMetrics
    speculation: Speculation | None
    num_recounted: int

    @property
    def asked_mismatch(self) -> LengthMismatch | None:
        """Prompts against the length that the flags asked for; None where no length was asked for."""
        return _mismatch([(r.prompt_len, r.asked_len) for r in self.requests if r.asked_len is not None])

    @property
    def served_mismatch(self) -> LengthMismatch | None:
        """The server's count of prompt tokens against the client's; None where the server gave none."""
        return _mismatch(
            [(o.prompt_tokens, o.prompt_len) for o in self.outputs if o.success and o.prompt_tokens is not None]
        )


def _mismatch(pairs: Sequence[tuple[int, int]]) -> LengthMismatch | None:
    if not pairs:
        return None
    differences = [counted - expected for counted, expected in pairs]
    return LengthMismatch(sum(map(bool, differences)), len(pairs), sum(differences) / len(pairs))
