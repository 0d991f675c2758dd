"""The result file of a run: its JSON, its name, its folder.

Owns the keys (docs/benchmarking.md lists them). Does not compute figures. A figure that does not exist is null.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from atom.benchmarks.metrics import input_tokens
from atom.benchmarks.run_data import LengthMismatch, Run


def make_result(run: Run, options: argparse.Namespace) -> dict[str, Any]:
    """The aggregate result; with --save-detailed, every request's own figures too."""
    metrics = run.metrics
    result: dict[str, Any] = {
        "date": run.date,
        "backend": options.backend,
        "model_id": run.model,
        "tokenizer_id": run.tokenizer,
        "dataset": options.dataset_name,
        "best_of": options.best_of,
        "num_prompts": len(run.requests),
        **dict(options.metadata),
        "request_rate": rate_text(options.request_rate),
        "burstiness": options.burstiness,
        "max_concurrency": options.max_concurrency,
        "seed": options.seed,
        "duration": metrics.duration,
        "completed": metrics.completed,
        "failed": metrics.failed,
        "failures": dict(metrics.failures),
        "total_input_tokens": metrics.total_input,
        "total_output_tokens": metrics.total_output,
        "request_throughput": metrics.request_throughput,
        "request_goodput": metrics.request_goodput,
        "output_throughput": metrics.output_throughput,
        "total_token_throughput": metrics.total_token_throughput,
        "concurrency": metrics.concurrency,
        "accept_length": run.speculation.accept_length if run.speculation else None,
        "acceptance_rate": run.speculation.acceptance_rate if run.speculation else None,
        "merge_factor": metrics.merge_factor,
        "output_lens_from_tokenizer": run.num_recounted,
        "input_len_mismatch": _mismatch(run.asked_mismatch),
        "server_input_len_mismatch": _mismatch(run.served_mismatch),
    }
    for name in options.percentile_metrics:
        result |= _statistics(run, name, options.metric_percentiles)
    if options.save_detailed:
        result |= _details(run)
    return result


def _statistics(run: Run, name: str, percentiles: tuple[float, ...]) -> dict[str, float | None]:
    found = run.metrics.distribution(name)
    statistics: dict[str, float | None] = {
        f"mean_{name}_ms": found.mean if found else None,
        f"median_{name}_ms": found.median if found else None,
        f"std_{name}_ms": found.std if found else None,
    }
    values = found.percentiles if found else tuple((p, None) for p in percentiles)
    return statistics | {f"p{percentile:g}_{name}_ms": value for percentile, value in values}


def _details(run: Run) -> dict[str, list[Any]]:
    """One entry a request, failed ones too, whose times are null."""
    outputs = run.outputs
    return {
        "input_lens": [input_tokens(output) for output in outputs],
        "output_lens": [(output.output_tokens or 0) if output.success else 0 for output in outputs],
        "start_times": [output.start_time - run.start if output.start_time else None for output in outputs],
        "ttfts": [output.ttft if output.success else None for output in outputs],
        "itls": [output.itl for output in outputs],
        "latencies": [output.latency if output.success else None for output in outputs],
        "generated_texts": [output.generated_text for output in outputs],
        "errors": [output.error for output in outputs],
    }


def _mismatch(mismatch: LengthMismatch | None) -> dict[str, float] | None:
    if mismatch is None:
        return None
    return {"prompts": mismatch.compared, "mismatched": mismatch.number, "mean_difference": mismatch.mean}


def rate_text(rate: float) -> float | str:
    """A request rate as JSON can hold it: infinity is the word inf."""
    return "inf" if math.isinf(rate) else rate


def result_path(run: Run, options: argparse.Namespace) -> Path:
    """Where the result goes. Without --result-filename: backend, rate, bound, model and date."""
    folder = Path(options.result_dir or ".")
    if options.result_filename:
        return folder / str(options.result_filename)
    bound = f"-concurrency{options.max_concurrency}" if options.max_concurrency else ""
    model = run.model.rstrip("/").rsplit("/", 1)[-1]
    return folder / f"{options.backend}-{options.request_rate:g}qps{bound}-{model}-{run.date}.json"


def write_json(path: Path, value: Any) -> None:
    """Write `value`, with infinity and NaN refused: they are no JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")
