"""`python -m atom.benchmarks.sweep`: the serving benchmark at several concurrencies or request rates in turn.

Owns the series of runs, its table and its plot, and the comparison of two folders of results. Every other flag is the
serving benchmark's own and goes to each run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atom.benchmarks.benchmark_serving import run_benchmark
from atom.benchmarks.extras import MissingExtraError
from atom.benchmarks.flags import find_problem, make_parser, positive_int, positive_number
from atom.benchmarks.http_client import ServerCallError
from atom.benchmarks.results import make_result, write_json
from atom.benchmarks.sweep_plot import write_sweep_plot

PROG = "python -m atom.benchmarks.sweep"
TABLE_NAME = "sweep.md"
PLOT_NAME = "sweep.png"

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table. key: in a result. higher_is_better: for the comparison."""

    title: str
    key: str
    higher_is_better: bool | None = None


COLUMNS = (
    Column("concurrency bound", "max_concurrency"),
    Column("request rate", "request_rate"),
    Column("completed", "completed"),
    Column("failed", "failed"),
    Column("req/s", "request_throughput", True),
    Column("output tok/s", "output_throughput", True),
    Column("total tok/s", "total_token_throughput", True),
    Column("mean TTFT ms", "mean_ttft_ms", False),
    Column("p99 TTFT ms", "p99_ttft_ms", False),
    Column("mean TPOT ms", "mean_tpot_ms", False),
    Column("p99 TPOT ms", "p99_tpot_ms", False),
    Column("mean E2EL ms", "mean_e2el_ms", False),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. Exits with 1 where a run completed no request."""
    parser = _sweep_parser()
    own, rest = parser.parse_known_args(argv)
    if own.compare:
        if rest or own.concurrencies or own.request_rates:
            parser.error("--compare takes two folders and nothing else")
        try:
            print(comparison_table(*(read_results(Path(folder)) for folder in own.compare)))
        except ValueError as error:
            sys.exit(f"{PROG}: {error}")
        return
    if bool(own.concurrencies) == bool(own.request_rates):
        parser.error("give --concurrencies or --request-rates, or --compare with two folders")
    options = make_parser(PROG).parse_args(rest)
    problem = find_problem(options)
    if problem:
        parser.error(problem)
    try:
        results = run_sweep(own, options)
    except (MissingExtraError, ServerCallError, ValueError) as error:
        sys.exit(f"{PROG}: {error}")
    if not all(result["completed"] for result in results):
        sys.exit(f"{PROG}: a run completed no request")


def run_sweep(own: argparse.Namespace, options: argparse.Namespace) -> list[Result]:
    """The runs, one after another; writes each result, the table and the plot into --result-dir."""
    folder = Path(options.result_dir or ".")
    results: list[Result] = []
    for step in own.concurrencies or own.request_rates:
        one = argparse.Namespace(**vars(options))
        # The table needs these, whatever the flags ask to print.
        one.percentile_metrics = ("ttft", "tpot", "itl", "e2el")
        one.metric_percentiles = tuple(dict.fromkeys((*options.metric_percentiles, 99.0)))
        if own.concurrencies:
            one.max_concurrency = step
            one.num_prompts = own.prompts_per_concurrency * step if own.prompts_per_concurrency else one.num_prompts
        else:
            one.request_rate = step
        name = f"concurrency-{step}" if own.concurrencies else f"rate-{step:g}"
        one.result_filename = f"{name}.json"
        print(f"\n--- {name} ---", flush=True)
        result = make_result(run_benchmark(one), one)
        write_json(folder / one.result_filename, result)
        results.append(result)
    table = results_table(results)
    print(f"\n{table}")
    (folder / TABLE_NAME).write_text(table + "\n", encoding="utf-8")
    write_sweep_plot(results, folder / PLOT_NAME)
    print(f"Plot: {folder / PLOT_NAME}")
    return results


def read_results(folder: Path) -> list[Result]:
    """The results in a folder, by load. Raises ValueError for a folder without one."""
    results = []
    for path in sorted(folder.glob("*.json")):
        value = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(value, dict) and "request_throughput" in value:
            results.append(value)
    if not results:
        raise ValueError(f"{folder} holds no result of a serving benchmark")
    return sorted(results, key=_load_key)


def results_table(results: Sequence[Result]) -> str:
    """One row a run, as Markdown."""
    rows = [[_cell(result.get(column.key)) for column in COLUMNS] for result in results]
    return markdown_table([column.title for column in COLUMNS], rows)


def comparison_table(before: Sequence[Result], after: Sequence[Result]) -> str:
    """The loads that both have: the second folder's figure over the first one's, below 1 or above 1 as it is."""
    earlier = {_load_key(result): result for result in before}
    compared = [column for column in COLUMNS if column.higher_is_better is not None]
    rows = []
    for result in after:
        other = earlier.get(_load_key(result))
        if other is not None:
            load = [_cell(result.get(key)) for key in ("max_concurrency", "request_rate")]
            rows.append(load + [_ratio(other.get(column.key), result.get(column.key), column) for column in compared])
    if not rows:
        return "The two folders have no load in common."
    return markdown_table(["concurrency bound", "request rate", *(column.title for column in compared)], rows)


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with its columns aligned, readable as text too."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    lines = [
        "| " + " | ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) + " |" for row in (titles, *rows)
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|")
    return "\n".join(lines)


def _ratio(before: float | None, after: float | None, column: Column) -> str:
    if not before or after is None:
        return "n/a"
    ratio = after / before
    better = (ratio > 1.0) == column.higher_is_better
    return f"{ratio:.3f} ({'better' if better else 'worse'})" if f"{ratio:.3f}" != "1.000" else "1.000"


def _load_key(result: Result) -> tuple[float, float]:
    rate = result.get("request_rate", "inf")
    return (float(result.get("max_concurrency") or "inf"), float(rate))


def _cell(value: Any) -> str:
    if value is None:
        return "n/a"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _sweep_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG,
        allow_abbrev=False,
        description="Several runs of atom.benchmarks.benchmark_serving, whose flags all work here.",
    )
    parser.add_argument("--concurrencies", nargs="+", type=positive_int, help="bounds on requests in flight, in turn")
    parser.add_argument(
        "--request-rates", "--request_rates", nargs="+", type=positive_number, help="requests a second, in turn"
    )
    parser.add_argument(
        "--prompts-per-concurrency",
        "--prompts_per_concurrency",
        type=positive_int,
        help="with --concurrencies: requests of a run for each request in flight, in place of --num-prompts",
    )
    parser.add_argument("--compare", nargs=2, metavar="FOLDER", help="compare the results in two folders")
    return parser


if __name__ == "__main__":
    main()
