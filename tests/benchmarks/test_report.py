"""The printed report, whole."""

from __future__ import annotations

from atom.benchmarks.backend_request_func import RequestFuncOutput
from atom.benchmarks.flags import parse_flags
from atom.benchmarks.metrics import calculate_metrics
from atom.benchmarks.report import format_report
from atom.benchmarks.run_data import Run
from atom.benchmarks.speculation import Speculation

EXPECTED = """\
============ Serving Benchmark Result ============
Successful requests:                     1
FAILED requests:                         7
  2 x reason 0
  1 x reason 1
  1 x reason 2
  1 x reason 3
  1 x reason 4
  and 1 other reasons
Benchmark duration (s):                  2.00
Total input tokens:                      8
Total generated tokens:                  7
Request throughput (req/s):              0.50
Request goodput (req/s):                 0.50
Output token throughput (tok/s):         3.50
Total Token throughput (tok/s):          7.50
Concurrency:                             0.20
Accept length:                           1.50
Acceptance rate (%):                     25.00
---------------Time to First Token----------------
Mean TTFT (ms):                          100.00
Median TTFT (ms):                        100.00
Std TTFT (ms):                           0.00
P99 TTFT (ms):                           100.00
P99.9 TTFT (ms):                         100.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           100.00
Median ITL (ms):                         100.00
Std ITL (ms):                            0.00
P99 ITL (ms):                            100.00
P99.9 ITL (ms):                          100.00
Merge factor (ITL/TPOT):                 2.00
  Note: a frame held 2.00 tokens on average; compare TPOT, not ITL.
==================================================
Output tokens of 1 answers were counted by the client's tokenizer (no usage).
The server's draft counters did not move: acceptance is that since its start.
1 of 1 prompts have another length than the client's count, by the server's (+2.00 tokens on average)."""


def test_the_whole_report() -> None:
    good = RequestFuncOutput("x", True, 0.4, 7, 0.1, [0.1, 0.1, 0.1], prompt_len=6, prompt_tokens=8)
    bad = [RequestFuncOutput(error=f"reason {i}") for i in (0, 0, 1, 2, 3, 4, 5)]
    flags = ["--dataset-name", "random", "--percentile-metrics", "ttft,itl", "--metric-percentiles", "99,99.9"]
    options = parse_flags(flags, "test")
    metrics = calculate_metrics([good, *bad], 2.0, (99.0, 99.9), {"ttft": 200.0})
    run = Run("date", "m", "t", 0.0, [], [good, *bad], metrics, Speculation(1.5, 0.25, True), 1)
    assert format_report(run, options) == EXPECTED


def test_figures_that_do_not_exist() -> None:
    options = parse_flags(["--dataset-name", "random"], "test")
    run = Run("date", "m", "t", 0.0, [], [], calculate_metrics([], 0.0), None, 0)
    report = format_report(run, options)
    assert "TPOT (ms):                               n/a" in report
    assert "Merge factor" not in report
