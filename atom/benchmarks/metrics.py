"""What a run's timestamps mean: the metrics, by definition.

Owns every formula. Knows nothing of HTTP, files or printing. Failed requests are counted and named; no figure of a
metric has one in it. All latencies are milliseconds, all rates are per second of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atom.benchmarks.backend_request_func import RequestFuncOutput

# Above this the gaps between frames are not gaps between tokens, and the report says so.
MERGE_NOTE_ABOVE = 1.05


@dataclass(frozen=True, slots=True)
class Distribution:
    """Statistics of one metric in milliseconds. percentiles: (percentile, value) pairs, as they were asked for."""

    number: int
    mean: float
    median: float
    std: float
    percentiles: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class BenchmarkMetrics:
    """The figures of one run.

    total_input, total_output: tokens of the completed requests. request_goodput: completed requests a second that met
    every target, None without targets. concurrency: requests in flight, on average. ttft, tpot, itl, e2el: None where
    no request has one. merge_factor: mean gap between frames over mean time per token, so tokens a frame; None without
    gaps. failures: reasons of failed requests with their number, most frequent first.
    """

    completed: int
    failed: int
    duration: float
    total_input: int
    total_output: int
    request_throughput: float
    request_goodput: float | None
    output_throughput: float
    total_token_throughput: float
    concurrency: float
    ttft: Distribution | None
    tpot: Distribution | None
    itl: Distribution | None
    e2el: Distribution | None
    merge_factor: float | None
    failures: tuple[tuple[str, int], ...]

    def distribution(self, metric: str) -> Distribution | None:
        """The metric by its name in the flags."""
        found: Distribution | None = {"ttft": self.ttft, "tpot": self.tpot, "itl": self.itl, "e2el": self.e2el}[metric]
        return found


def count_output_tokens(outputs: Sequence[RequestFuncOutput], count: Callable[[str], int]) -> int:
    """Fill in `output_tokens` where the server gave no count; returns for how many requests. `count`: tokens of a text.

    An answer with a frame that carried a token has at least one.
    """
    missing = [output for output in outputs if output.success and output.output_tokens is None]
    for output in missing:
        output.output_tokens = max(count(output.generated_text), 1)
    return len(missing)


def calculate_metrics(
    outputs: Sequence[RequestFuncOutput],
    duration: float,
    percentiles: Sequence[float] = (99.0,),
    targets: Mapping[str, float] | None = None,
) -> BenchmarkMetrics:
    """The metrics of a run of `duration` seconds. `targets`: goodput's bounds in milliseconds by metric.

    Every completed output must have its `output_tokens` (see count_output_tokens).
    """
    done = [output for output in outputs if output.success]
    total_input = sum(input_tokens(output) for output in done)
    total_output = sum(output.output_tokens or 0 for output in done)
    tpots = [output.tpot for output in done]
    good = sum(meets(output, targets) for output in done) if targets else None
    per_second = 1.0 / duration if duration > 0 else 0.0

    def summary(seconds: Sequence[float | None]) -> Distribution | None:
        return summarize([value for value in seconds if value is not None], percentiles)

    return BenchmarkMetrics(
        completed=len(done),
        failed=len(outputs) - len(done),
        duration=duration,
        total_input=total_input,
        total_output=total_output,
        request_throughput=len(done) * per_second,
        request_goodput=None if good is None else good * per_second,
        output_throughput=total_output * per_second,
        total_token_throughput=(total_input + total_output) * per_second,
        concurrency=sum(output.latency for output in done) * per_second,
        ttft=summary([output.ttft for output in done]),
        tpot=summary(tpots),
        itl=summary([gap for output in done for gap in output.itl]),
        e2el=summary([output.latency for output in done]),
        merge_factor=merge_factor(done),
        failures=tuple(Counter(output.error for output in outputs if not output.success).most_common()),
    )


def input_tokens(output: RequestFuncOutput) -> int:
    """Tokens of the prompt: the server's count, and the client's own where the server gave none."""
    return output.prompt_len if output.prompt_tokens is None else output.prompt_tokens


def meets(output: RequestFuncOutput, targets: Mapping[str, float]) -> bool:
    """Did the request keep every target by its own figures? An answer of one token keeps any target for TPOT."""
    values = {"ttft": output.ttft, "tpot": output.tpot or 0.0, "e2el": output.latency}
    return output.success and all(values[name] * 1000.0 <= bound for name, bound in targets.items())


def merge_factor(outputs: Sequence[RequestFuncOutput]) -> float | None:
    """Mean gap between frames over mean time per token, both over all tokens of all requests."""
    streams = [output for output in outputs if output.itl and output.tpot is not None]
    gaps = [gap for output in streams for gap in output.itl]
    num_tokens = sum((output.output_tokens or 0) - 1 for output in streams)
    decode_time = sum(output.latency - output.ttft for output in streams)
    if not gaps or decode_time <= 0:
        return None
    return (sum(gaps) / len(gaps)) / (decode_time / num_tokens)


def summarize(seconds: Sequence[float], percentiles: Sequence[float]) -> Distribution | None:
    """Statistics of some values in seconds, in milliseconds; None for no value. std is that of the population."""
    if not seconds:
        return None
    values = np.asarray(seconds, dtype=np.float64) * 1000.0
    return Distribution(
        number=len(values),
        mean=float(values.mean()),
        median=float(np.median(values)),
        std=float(values.std()),
        percentiles=tuple((p, float(np.percentile(values, p))) for p in percentiles),
    )
