"""What is printed about a run.

Owns wording and layout. Takes every figure from the Run.
"""

from __future__ import annotations

import argparse

from atom.benchmarks.metrics import MERGE_NOTE_ABOVE, Distribution
from atom.benchmarks.run_data import LengthMismatch, Run

WIDTH = 50
LABEL_WIDTH = 40
MAX_REASONS = 5
TITLES = {
    "ttft": ("Time to First Token", "TTFT"),
    "tpot": ("Time per Output Token (excl. 1st token)", "TPOT"),
    "itl": ("Inter-token Latency", "ITL"),
    "e2el": ("End-to-end Latency", "E2EL"),
}


def format_report(run: Run, options: argparse.Namespace) -> str:
    """The report of one run, without a line break at its end."""
    lines = [" Serving Benchmark Result ".center(WIDTH, "="), *_totals(run)]
    for name in options.percentile_metrics:
        lines += _distribution(name, run.metrics.distribution(name))
        if name == "itl":
            lines += _merging(run.metrics.merge_factor)
    lines.append("=" * WIDTH)
    return "\n".join(lines + _notes(run))


def _totals(run: Run) -> list[str]:
    metrics = run.metrics
    lines = [_line("Successful requests:", metrics.completed)]
    if metrics.failed:
        lines.append(_line("FAILED requests:", metrics.failed))
        lines += [f"  {number} x {reason}" for reason, number in metrics.failures[:MAX_REASONS]]
        if len(metrics.failures) > MAX_REASONS:
            lines.append(f"  and {len(metrics.failures) - MAX_REASONS} other reasons")
    lines += [
        _line("Benchmark duration (s):", metrics.duration),
        _line("Total input tokens:", metrics.total_input),
        _line("Total generated tokens:", metrics.total_output),
        _line("Request throughput (req/s):", metrics.request_throughput),
    ]
    if metrics.request_goodput is not None:
        lines.append(_line("Request goodput (req/s):", metrics.request_goodput))
    lines += [
        _line("Output token throughput (tok/s):", metrics.output_throughput),
        _line("Total Token throughput (tok/s):", metrics.total_token_throughput),
        _line("Concurrency:", metrics.concurrency),
    ]
    if run.speculation:
        rate = run.speculation.acceptance_rate
        lines.append(_line("Accept length:", run.speculation.accept_length))
        lines.append(_line("Acceptance rate (%):", None if rate is None else rate * 100.0))
    return lines


def _distribution(name: str, found: Distribution | None) -> list[str]:
    title, short = TITLES[name]
    header = title.center(WIDTH, "-")
    if found is None:
        return [header, _line(f"{short} (ms):", None)]
    return [
        header,
        _line(f"Mean {short} (ms):", found.mean),
        _line(f"Median {short} (ms):", found.median),
        _line(f"Std {short} (ms):", found.std),
        *(_line(f"P{percentile:g} {short} (ms):", value) for percentile, value in found.percentiles),
    ]


def _merging(factor: float | None) -> list[str]:
    if factor is None:
        return []
    lines = [_line("Merge factor (ITL/TPOT):", factor)]
    if factor > MERGE_NOTE_ABOVE:
        lines.append(f"  Note: a frame held {factor:.2f} tokens on average; compare TPOT, not ITL.")
    return lines


def _notes(run: Run) -> list[str]:
    notes = []
    if run.num_recounted:
        notes.append(f"Output tokens of {run.num_recounted} answers were counted by the client's tokenizer (no usage).")
    if run.speculation and run.speculation.since_start:
        notes.append("The server's draft counters did not move: acceptance is that since its start.")
    notes += _mismatch(run.asked_mismatch, "the length asked for")
    notes += _mismatch(run.served_mismatch, "the client's count, by the server's")
    return notes


def _mismatch(mismatch: LengthMismatch | None, than: str) -> list[str]:
    if mismatch is None or not mismatch.number:
        return []
    return [
        f"{mismatch.number} of {mismatch.compared} prompts have another length than {than}"
        f" ({mismatch.mean:+.2f} tokens on average)."
    ]


def _line(label: str, value: float | None) -> str:
    text = "n/a" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
    return f"{label:<{LABEL_WIDTH}} {text:<9}".rstrip()
