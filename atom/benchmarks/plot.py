"""Plots of one run: latency distributions and throughput over time, as PNG and on one HTML page.

Owns the drawing. matplotlib is imported only here and in `sweep_plot`.
"""

from __future__ import annotations

import base64
import html
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from atom.benchmarks.backend_request_func import RequestFuncOutput
from atom.benchmarks.extras import need
from atom.benchmarks.report import TITLES, format_report
from atom.benchmarks.run_data import Run

NUM_BINS = 100
_DPI = 120


def check_plotting() -> None:
    """Raises MissingExtraError before the load is sent, not after."""
    need("matplotlib", "--plot")


def write_plots(run: Run, options: Namespace, result_path: Path) -> list[Path]:
    """Draw the run; the files lie beside `result_path` and begin with its name. Returns them, the page last."""
    folder, stem = result_path.parent, result_path.name.removesuffix(".json")
    folder.mkdir(parents=True, exist_ok=True)
    images = [folder / f"{stem}.latency.png", folder / f"{stem}.throughput.png"]
    latency_figure(run.outputs).savefig(images[0], dpi=_DPI)
    throughput_figure(run).savefig(images[1], dpi=_DPI)
    page = folder / f"{stem}.html"
    page.write_text(html_page(run.model, format_report(run, options), images), encoding="utf-8")
    return [*images, page]


def html_page(title: str, text: str, images: Sequence[Path]) -> str:
    """A page that needs no other file: the text and the images."""
    pictures = "\n".join(map(_inline_image, images))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{html.escape(title)}: serving benchmark</title>
<style>body {{ font-family: sans-serif; margin: 2em; }} img {{ max-width: 100%; display: block; }}</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
{pictures}
<pre>{html.escape(text)}</pre>
</body>
</html>
"""


def _inline_image(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{html.escape(path.name)}" src="data:image/png;base64,{data}">'


def latency_figure(outputs: Sequence[RequestFuncOutput]) -> Any:
    """The share of requests, or of gaps, that took at most so long, for each metric."""
    done = [output for output in outputs if output.success]
    values = {
        "ttft": [output.ttft for output in done],
        "tpot": [output.tpot for output in done if output.tpot is not None],
        "itl": [gap for output in done for gap in output.itl],
        "e2el": [output.latency for output in done],
    }
    figure = new_figure(width=10.0, height=7.0)
    for place, (name, seconds) in enumerate(values.items(), start=1):
        axes = figure.add_subplot(2, 2, place)
        title, short = TITLES[name]
        if seconds:
            sorted_ms = np.sort(np.asarray(seconds)) * 1000.0
            axes.step(sorted_ms, np.arange(1, len(sorted_ms) + 1) / len(sorted_ms), where="post")
        else:
            axes.text(0.5, 0.5, "no values", ha="center", transform=axes.transAxes)
        axes.set(title=title, xlabel=f"{short} (ms)", ylabel="share at or below", ylim=(0.0, 1.02))
        axes.grid(alpha=0.3)
    return figure


def throughput_figure(run: Run) -> Any:
    """Output tokens a second and requests in flight, from the start of the load to its end."""
    done = [output for output in run.outputs if output.success]
    edges = np.linspace(0.0, max(run.metrics.duration, 1e-6), NUM_BINS + 1)
    width = edges[1] - edges[0]
    middles = edges[:-1] + width / 2
    times, weights = token_times(done, run.start)
    tokens, _ = np.histogram(times, bins=edges, weights=weights)
    starts = np.asarray([output.start_time - run.start for output in done])
    ends = starts + np.asarray([output.latency for output in done])
    in_flight = [int(np.sum((starts <= t) & (ends > t))) for t in middles]
    figure = new_figure(width=10.0, height=6.0)
    upper = figure.add_subplot(2, 1, 1)
    upper.plot(middles, tokens / width)
    upper.set(
        title="Throughput", ylabel="output tokens a second", xlabel=f"seconds (bins of {width:.3g} s)", ylim=(0, None)
    )
    lower = figure.add_subplot(2, 1, 2)
    lower.step(middles, in_flight, where="mid")
    lower.set(ylabel="requests in flight", xlabel="seconds", ylim=(0, None))
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    return figure


def token_times(outputs: Sequence[RequestFuncOutput], start: float) -> tuple[np.ndarray, np.ndarray]:
    """When each frame with tokens came, in seconds from `start`, and how many tokens it held on average."""
    times: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for output in outputs:
        frames = output.start_time - start + output.ttft + np.concatenate(([0.0], np.cumsum(output.itl)))
        times.append(frames)
        weights.append(np.full(len(frames), (output.output_tokens or 0) / len(frames)))
    if not times:
        return np.zeros(0), np.zeros(0)
    return np.concatenate(times), np.concatenate(weights)


def new_figure(width: float, height: float) -> Any:
    """An empty figure that needs no display; sizes are inches."""
    return need("matplotlib.figure", "plotting").Figure(figsize=(width, height), layout="constrained")
