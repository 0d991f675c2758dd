"""The plot of a sweep: throughput against latency.

Owns the drawing of one figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from atom.benchmarks.plot import new_figure

_PANELS = (("mean_ttft_ms", "mean TTFT (ms)"), ("mean_tpot_ms", "mean TPOT (ms)"), ("mean_e2el_ms", "mean E2EL (ms)"))
_DPI = 120


def write_sweep_plot(results: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Output throughput over each latency, one point a run, labelled with its load."""
    figure = new_figure(width=13.0, height=4.5)
    for place, (key, label) in enumerate(_PANELS, start=1):
        axes = figure.add_subplot(1, len(_PANELS), place)
        points = [(result[key], result["output_throughput"], load_label(result)) for result in results if result[key]]
        axes.plot([x for x, _, _ in points], [y for _, y, _ in points], marker="o")
        for x, y, text in points:
            axes.annotate(text, (x, y), textcoords="offset points", xytext=(5, 5))
        axes.set(xlabel=label, ylabel="output tokens a second", xlim=(0, None), ylim=(0, None))
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=_DPI)


def load_label(result: Mapping[str, Any]) -> str:
    """The load of a result in two words at most."""
    rate = result["request_rate"]
    return f"{result['max_concurrency']} at once" if rate == "inf" else f"{rate:g}/s"
