"""`python -m atom.benchmarks.benchmark_serving`: sends a load to a running server and reports what it measured.

Owns the order of a run: prompts, warm-up, load, metrics, report, files. Every step is another module's.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tqdm import tqdm

from atom.benchmarks.backend_request_func import (
    ASYNC_REQUEST_FUNCS,
    ProgressBar,
    RequestFuncInput,
    RequestFuncOutput,
)
from atom.benchmarks.benchmark_utils import pytorch_benchmark_records
from atom.benchmarks.datasets import sample_requests
from atom.benchmarks.extras import MissingExtraError
from atom.benchmarks.flags import api_path, base_url, parse_flags
from atom.benchmarks.http_client import ServerCallError, Session, call, clock
from atom.benchmarks.load import arrival_times, run_load
from atom.benchmarks.metrics import calculate_metrics, count_output_tokens
from atom.benchmarks.prompts import SampleRequest, load_prompt_writer
from atom.benchmarks.report import format_report
from atom.benchmarks.results import make_result, result_path, write_json
from atom.benchmarks.run_data import Run
from atom.benchmarks.speculation import Speculation, read_counters, speculation_between

PROG = "python -m atom.benchmarks.benchmark_serving"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Target:
    """Where requests go: one session, one address, one way to write a request."""

    options: argparse.Namespace
    model: str
    session: Session

    async def send(self, request: SampleRequest, pbar: ProgressBar | None = None) -> RequestFuncOutput:
        options = self.options
        request_input = RequestFuncInput(
            prompt=request.prompt,
            api_url=base_url(options) + api_path(options),
            prompt_len=request.prompt_len,
            output_len=request.output_len,
            model=self.model,
            model_name=options.served_model_name,
            best_of=options.best_of,
            logprobs=options.logprobs,
            ignore_eos=options.ignore_eos,
        )
        return await ASYNC_REQUEST_FUNCS[options.backend](request_input, pbar, self.session)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What came back. start: reading of the clock when the load began. outputs: one a request. duration: seconds."""

    start: float
    outputs: list[RequestFuncOutput]
    duration: float
    speculation: Speculation | None


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. Exits with 2 for flags that can not be run, with 1 where nothing could be measured."""
    options = parse_flags(argv, PROG, "Measure a running server.")
    try:
        run = run_benchmark(options)
    except (MissingExtraError, ServerCallError, ValueError) as error:
        sys.exit(f"{PROG}: {error}")
    if not run.metrics.completed:
        sys.exit(f"{PROG}: no request completed")


def run_benchmark(options: argparse.Namespace) -> Run:
    """One run by the flags: prints the report and writes the files that the flags ask for.

    Raises ServerCallError, MissingExtraError, and ValueError for a dataset or tokenizer that can not be used.
    """
    if options.plot:
        from atom.benchmarks.plot import check_plotting

        check_plotting()
    model = options.model or run_async(_first_model(base_url(options)))
    tokenizer = options.tokenizer or model
    writer = load_prompt_writer(
        tokenizer,
        use_chat_template=options.use_chat_template,
        sends_messages=options.backend == "openai-chat",
        trust_remote_code=options.trust_remote_code,
    )
    sampled = sample_requests(options, writer, options.num_prompts + options.num_warmups)
    requests, warmups = sampled[: options.num_prompts], sampled[options.num_prompts :]
    if len(requests) < options.num_prompts:
        print(f"The dataset has {len(requests)} requests that can be used; --num-prompts asks for more.")
    warmups += requests[: options.num_warmups - len(warmups)]
    _print_plan(options, model, len(requests))
    date = time.strftime("%Y%m%d-%H%M%S")
    measured = run_async(measure(options, model, requests, warmups))
    outputs = measured.outputs
    num_recounted = count_output_tokens(outputs, lambda text: len(writer.tokenizer.encode(text, False)))
    metrics = calculate_metrics(outputs, measured.duration, options.metric_percentiles, dict(options.goodput))
    run = Run(date, model, tokenizer, measured.start, requests, outputs, metrics, measured.speculation, num_recounted)
    print(format_report(run, options), flush=True)
    _write_files(run, options)
    return run


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on uvloop where there is one: its readings of the clock come sooner after the bytes."""
    try:
        import uvloop
    except ModuleNotFoundError:  # not on Windows
        return asyncio.run(work)
    return uvloop.run(work)


async def _first_model(url: str) -> str:
    """The model that the server lists first. Raises ServerCallError."""
    async with Session() as session:
        models = await call(session, "GET", f"{url}/v1/models")
    try:
        return str(models["data"][0]["id"])
    except (TypeError, KeyError, IndexError):
        raise ServerCallError(f"{url}/v1/models lists no model; give --model") from None


async def measure(
    options: argparse.Namespace, model: str, requests: Sequence[SampleRequest], warmups: Sequence[SampleRequest]
) -> Measurement:
    """Warm up, then send the load. Raises ServerCallError where the profiler does not start."""
    url = base_url(options)
    times = arrival_times(len(requests), options.request_rate, options.burstiness, options.seed)
    async with Session() as session:
        target = _Target(options, model, session)
        await _warm_up(target, warmups)
        before = await _counters(session, url)
        if options.profile:
            print(f"Profiler: {await _profile(session, url, 'start')}", flush=True)
        with tqdm(total=len(requests), disable=options.disable_tqdm) as pbar:
            gc.collect()
            gc.freeze()  # prompts need not be looked at again while the clock runs
            start = clock()
            outputs, duration = await run_load(
                requests, lambda request: target.send(request, pbar), times, options.max_concurrency
            )
            gc.unfreeze()
        if options.profile:
            await _stop_profile(session, url)
        return Measurement(start, outputs, duration, speculation_between(before, await _counters(session, url)))


async def _warm_up(target: _Target, warmups: Sequence[SampleRequest]) -> None:
    if not warmups:
        return
    print(f"Warming up with {len(warmups)} requests...", flush=True)
    outputs, _ = await run_load(warmups, target.send, [0.0] * len(warmups), target.options.max_concurrency)
    for reason in dict.fromkeys(output.error for output in outputs if not output.success):
        print(f"A warm-up request failed: {reason}", flush=True)


async def _counters(session: Session, url: str) -> dict[str, Any] | None:
    """Draft statistics; a server that fails to give them is measured all the same, and that is said."""
    try:
        return await read_counters(session, url)
    except ServerCallError as error:
        print(f"No draft statistics: {error}", flush=True)
        return None


async def _profile(session: Session, url: str, action: str) -> str:
    """Start or stop the server's profiler; what it answered. Raises ServerCallError where it refuses."""
    print(f"Profiler: POST {url}/{action}_profile", flush=True)
    answer = await call(session, "POST", f"{url}/{action}_profile")
    if answer is None:
        raise ServerCallError(f"--profile: the server has no {url}/{action}_profile")
    return f"{'started' if action == 'start' else 'stopped'}: {answer}"


async def _stop_profile(session: Session, url: str) -> None:
    """Stop the profiler; a refusal is said, and the measurement kept."""
    try:
        said = await _profile(session, url, "stop")
    except ServerCallError as error:
        said = f"not stopped: {error}"
    print(f"Profiler: {said}", flush=True)


def _print_plan(options: argparse.Namespace, model: str, number: int) -> None:
    rate = options.request_rate
    print(f"{number} requests ({options.dataset_name}) to {base_url(options)}{api_path(options)}, model {model}")
    print(f"Traffic request rate: {rate:g}")
    if rate != float("inf"):
        process = "Poisson process" if options.burstiness == 1.0 else "gamma distribution"
        print(f"Burstiness factor: {options.burstiness:g} ({process})")
    print(f"Maximum request concurrency: {options.max_concurrency}", flush=True)


def _write_files(run: Run, options: argparse.Namespace) -> None:
    path = result_path(run, options)
    result = make_result(run, options)
    if options.save_result or options.save_detailed:
        write_json(path, result)
        print(f"Result: {path}")
        records = pytorch_benchmark_records(options, result)
        if records:
            write_json(path.with_suffix(".pytorch.json"), records)
    if options.plot:
        from atom.benchmarks.plot import write_plots

        print("Plots: " + ", ".join(map(str, write_plots(run, options, path))))


if __name__ == "__main__":
    main()
