from __future__ import annotations

import numpy as np
import pytest

from atom.benchmarks.backend_request_func import RequestFuncOutput
from atom.benchmarks.metrics import calculate_metrics
from atom.benchmarks.plot import html_page, latency_figure, throughput_figure, token_times
from atom.benchmarks.run_data import Run

pytest.importorskip("matplotlib", reason="comes with the bench extra")

OUTPUTS = [
    RequestFuncOutput("x", True, 0.4, 6, 0.1, [0.1, 0.2], start_time=50.0),
    RequestFuncOutput("x", True, 0.2, 1, 0.2, [], start_time=50.5),
    RequestFuncOutput(error="broken", start_time=50.5),
]


def test_when_tokens_came_and_how_many() -> None:
    times, weights = token_times(OUTPUTS[:2], 50.0)
    assert times == pytest.approx([0.1, 0.2, 0.4, 0.7])
    assert weights == pytest.approx([2, 2, 2, 1])
    assert [len(part) for part in token_times([], 0.0)] == [0, 0]


def test_the_curves_show_the_values() -> None:
    panels = latency_figure(OUTPUTS).axes
    assert panels[0].get_title() == "Time to First Token"
    (curve,) = panels[0].get_lines()
    assert list(curve.get_xdata()) == pytest.approx([100, 200])
    assert list(curve.get_ydata()) == pytest.approx([0.5, 1.0])


def test_the_timeline_holds_every_token_once() -> None:
    run = Run("date", "m", "t", 50.0, [], OUTPUTS, calculate_metrics(OUTPUTS, 1.0), None, 0)
    upper, lower = throughput_figure(run).axes
    rates = upper.get_lines()[0].get_ydata()
    assert np.sum(rates) / 100 == pytest.approx(7)
    in_flight = lower.get_lines()[0].get_ydata()
    assert (in_flight[20], in_flight[45], in_flight[60], in_flight[90]) == (1, 0, 1, 0)


def test_text_on_the_page_is_escaped() -> None:
    page = html_page("<m>", "a < b & c", [])
    assert "<pre>a &lt; b &amp; c</pre>" in page
    assert "<h1>&lt;m&gt;</h1>" in page
