"""`python -m conformance`: the suite, or a folder of vectors, with the report. Exits 1 on a red cell or a miss."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from atom.entrypoints.openai.tool_parser.registry import UnknownFormatError
from conformance.chunking import all_chunkings
from conformance.corpus import CorpusError, load_corpus
from conformance.corpus_run import CorpusRow, corpus_table, run_corpus
from conformance.profiles import LONG, SHORT, Profile
from conformance.report import Report, to_json
from conformance.report_html import to_html
from conformance.report_markdown import to_markdown
from conformance.subjects import all_subjects, open_vector
from conformance.suite import SubjectResult, run_subject

DEFAULT_SEED = 20_240_613
REPORT_FOLDER = Path(__file__).parent / "report"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit status."""
    options = _parser().parse_args(arguments)
    profile = LONG if options.long else SHORT
    started = time.monotonic()
    try:
        is_suite_wanted = options.corpus is None or options.with_suite
        results = _run_suite(options.format, profile, options.seed, options.jobs) if is_suite_wanted else []
        corpus = _run_vectors(options.corpus, options.format, options.seed) if options.corpus else []
    except (CorpusError, UnknownFormatError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    report = Report(
        command=shlex.join(["python", "-m", "conformance", *(arguments if arguments is not None else sys.argv[1:])]),
        profile=profile.name,
        seed=options.seed,
        seconds=time.monotonic() - started,
        columns=tuple(chunking.name for chunking in all_chunkings(options.seed)),
        subjects=tuple(results),
        corpus_folder=str(options.corpus) if options.corpus else None,
        corpus=tuple(corpus),
    )
    _print(report)
    _write(report, options.report)
    return 0 if report.is_green else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("--long", action="store_true", help="twenty times as many cases, in about twenty minutes")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="draw other cases (default: %(default)s)")
    parser.add_argument("--format", action="append", help="only this format or dialect; may be given again")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="run the vectors of DIR/*.jsonl, and nothing else")
    parser.add_argument("--with-suite", action="store_true", help="with --corpus: the drawn cases too, in one report")
    parser.add_argument("--report", type=Path, default=REPORT_FOLDER, metavar="DIR", help="where the report goes")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes (default: %(default)s)"
    )
    return parser


def _run_suite(names: list[str] | None, profile: Profile, seed: int, jobs: int) -> list[SubjectResult]:
    """Every chosen subject's result, in the order of the tables whatever finishes first."""
    chosen = _chosen(names, [subject.name for subject in all_subjects()])
    run = partial(_run_named, profile=profile, seed=seed)
    if jobs == 1:
        return [_told(run(name)) for name in chosen]
    with ProcessPoolExecutor(jobs) as pool:
        return [_told(result) for result in pool.map(run, chosen)]


def _run_named(name: str, profile: Profile, seed: int) -> SubjectResult:
    """One subject by its name, since names cross a process border and readers don't."""
    subject = next(subject for subject in all_subjects() if subject.name == name)
    return run_subject(subject, profile, seed)


def _run_vectors(folder: Path, names: list[str] | None, seed: int) -> list[CorpusRow]:
    vectors = load_corpus(folder)
    chosen = _chosen(names, list(dict.fromkeys(vector.format for vector in vectors)))
    return run_corpus([vector for vector in vectors if vector.format in chosen], open_vector, all_chunkings(seed))


def _chosen(names: list[str] | None, known: list[str]) -> list[str]:
    if unknown := [name for name in names or () if name not in known]:
        raise SystemExit(f"conformance: {unknown[0]!r} is none of {', '.join(known)}")
    return [name for name in known if names is None or name in names]


def _told(result: SubjectResult) -> SubjectResult:
    num_red = sum(cell.num_red for cell in result.tally.cells.values())
    state = f"RED {num_red}" if num_red else "ok"
    print(f"{result.name:24} {result.tally.num_cases.total():6} cases {result.seconds:6.1f} s  {state}", flush=True)
    return result


def _print(report: Report) -> None:
    for name, finding in report.findings:
        print(f"\n{name}: {finding.property} at {finding.chunking} ({finding.scenario}; {finding.form})")
        print(f"  text {finding.text!r}\n  {finding.message}")
    if report.corpus:
        print(corpus_table(report.corpus))
    for row in report.corpus:
        for miss in row.misses:
            print(f"\nmiss {miss.vector} at {miss.chunking}: {miss.why}\n  text   {miss.text!r}")
            print(f"  wanted {miss.wanted}\n  got    {miss.got}")
    print(report.summary())


def _write(report: Report, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("conformance.html", to_html(report)),
        ("conformance.json", to_json(report)),
        ("conformance.md", to_markdown(report)),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    print(f"report: {folder / 'conformance.html'} (also .json, .md)")


if __name__ == "__main__":
    sys.exit(main())
