"""Results in the form that PyTorch's benchmark dashboard reads.

Owns that form alone. It is written only where SAVE_TO_PYTORCH_BENCHMARK_FORMAT is set, beside the result.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

ENABLED_BY = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT"
BENCHMARK_NAME = "ATOM serving benchmark"
_METRIC_PREFIXES = ("mean_", "median_", "std_", "p")
_RATES = ("request_throughput", "request_goodput", "output_throughput", "total_token_throughput")


def convert_to_pytorch_benchmark_format(
    args: argparse.Namespace, metrics: Mapping[str, Sequence[Any]], extra_info: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One record a metric, with its values; nothing unless the environment asks for this form.

    metrics: values by name. extra_info: kept with every record.
    """
    if not os.environ.get(ENABLED_BY):
        return []
    return [
        {
            "benchmark": {"name": BENCHMARK_NAME, "extra_info": {"args": _plain(vars(args))}},
            "model": {"name": args.model},
            "metric": {"name": name, "benchmark_values": list(values), "extra_info": _plain(extra_info)},
        }
        for name, values in metrics.items()
    ]


def pytorch_benchmark_records(args: argparse.Namespace, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A result's latencies and rates as such records; its other single values go along with each."""
    latencies = {k: [v] for k, v in result.items() if k.endswith("_ms") and k.startswith(_METRIC_PREFIXES)}
    rates = {key: [result[key]] for key in _RATES}
    metrics = {name: values for name, values in (latencies | rates).items() if values[0] is not None}
    extra = {key: value for key, value in result.items() if key not in metrics and not isinstance(value, list | dict)}
    return convert_to_pytorch_benchmark_format(args, metrics, extra)


def _plain(value: Any) -> Any:
    """`value` as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)
