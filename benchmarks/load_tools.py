"""Three load testers against one server: `benchmark_serving`, guidellm and aiperf, in turn, must measure the same.

The server runs the real engine over the shipped model with layers that add nothing (they make a step long enough that a
client's own work does not show). Server and clients get cores of their own, so that a tool that takes much CPU does not
slow what it measures. GUIDELLM and AIPERF name the executables; both have environments of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from benchmarks.live_server import live_server

STREAMS, REQUESTS, NUM_INPUT, NUM_OUTPUT = 2, 24, 128, 32
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
NUM_LAYERS = 32
METRICS = {"ttft": "ms", "tpot": "ms", "throughput": "tok/s"}
_TIMEOUT = 300

Figures = dict[str, float]


def run() -> list[dict[str, Any]]:
    """Medians of each tool, then each tool's over ours."""
    tools = {"benchmark_serving": _ours, "guidellm": _guidellm, "aiperf": _aiperf}
    found: dict[str, list[Figures]] = {name: [] for name in tools}
    with tempfile.TemporaryDirectory() as scratch:
        model = slow_model(Path(scratch) / "model")
        server_cores, client_cores = _cores()
        flags = ["--served-model-name", "m", "--no-enable-prefix-caching"]  # prompts come again in every round
        with live_server(model, flags, cores=server_cores) as url, _on(client_cores):
            for number in range(ROUNDS + 1):
                for name, measure in tools.items():
                    figures = measure(url, model, Path(scratch) / f"{name}{number}")
                    if number:  # the first round warms up
                        found[name].append(figures)
    rows = []
    for metric, unit in METRICS.items():
        medians = {name: statistics.median(figures[metric] for figures in all_) for name, all_ in found.items()}
        rows += [{"name": f"{metric}: {name}", "value": value, "unit": unit} for name, value in medians.items()]
        for name in ("guidellm", "aiperf"):
            ratio = medians[name] / medians["benchmark_serving"]
            rows.append({"name": f"{metric}: {name} over ours", "value": ratio, "unit": "x", "bar": "0.9 to 1.1"})
    return rows


def slow_model(folder: Path) -> Path:
    """The shipped model with more layers, whose projections back into the residual are zero: its answers, later."""
    from atom.config import Config

    source = Config.resolve("atom-tiny").model_path
    shutil.copytree(source, folder)
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    first = {name: weight for name, weight in weights.items() if name.startswith("model.layers.0.")}
    for layer in range(config["num_hidden_layers"], NUM_LAYERS):
        for name, weight in first.items():
            adds = name.endswith(("o_proj.weight", "down_proj.weight"))
            copy = torch.zeros_like(weight) if adds else weight.clone()
            weights[name.replace("layers.0.", f"layers.{layer}.")] = copy
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": NUM_LAYERS}))
    return folder


def _cores() -> tuple[set[int], set[int]]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("load_tools: needs two cores, one for the server and one for the clients")
    return set(cores[:1]), set(cores[1:])


@contextlib.contextmanager
def _on(cores: set[int]) -> Iterator[None]:
    """This process and what it starts, on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _executable(variable: str) -> str:
    path = os.environ.get(variable)
    if not path or not Path(path).exists():
        sys.exit(f"load_tools: {variable} must name the tool's executable")
    return path


def _call(command: list[str], folder: Path, **environment: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=_TIMEOUT
    )
    if done.returncode:
        sys.exit(f"load_tools: {Path(command[0]).name} failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _ours(url: str, model: Path, folder: Path) -> Figures:
    load = ["--random-input-len", NUM_INPUT, "--random-output-len", NUM_OUTPUT, "--max-concurrency", STREAMS]
    _call(
        [
            sys.executable, "-m", "atom.benchmarks.benchmark_serving", "--backend", "openai", "--base-url", url,
            "--model", "m", "--tokenizer", str(model), "--dataset-name", "random", *map(str, load), "--ignore-eos",
            "--num-prompts", str(REQUESTS), "--save-result", "--result-filename", str(folder / "result.json"),
        ],
        folder,
        PYTHONPATH=os.getcwd(),
    )  # fmt: skip
    result = json.loads((folder / "result.json").read_text())
    names = {"ttft": "mean_ttft_ms", "tpot": "mean_tpot_ms", "throughput": "output_throughput"}
    return {metric: float(result[name]) for metric, name in names.items()}


def _guidellm(url: str, model: Path, folder: Path) -> Figures:
    _call(
        [
            _executable("GUIDELLM"), "run", "--disable-progress",
            "--backend", f"kind=openai_http,target={url},model=m,request_format=/v1/completions",
            "--profile", f"kind=concurrent,streams={STREAMS}",
            "--constraint", f"kind=max_requests,count={REQUESTS}",
            "--tokenizer", f"kind=huggingface_auto,model={model}",
            "--data", f"kind=synthetic_text,prompt_tokens={NUM_INPUT},output_tokens={NUM_OUTPUT}",
            "--output", "kind=json,path=result.json",
        ],
        folder,
        HF_HUB_OFFLINE="1",
    )  # fmt: skip
    [file] = folder.rglob("*.json")
    metrics = json.loads(file.read_text())["benchmarks"][0]["metrics"]
    names = {
        "ttft": "time_to_first_token_ms",
        "tpot": "inter_token_latency_ms",
        "throughput": "output_tokens_per_second",
    }
    return {metric: float(metrics[name]["successful"]["mean"]) for metric, name in names.items()}


def _aiperf(url: str, model: Path, folder: Path) -> Figures:
    _call(
        [
            _executable("AIPERF"), "profile", "-m", "m", "--url", url, "--endpoint-type", "completions", "--streaming",
            "--tokenizer", str(model), "--isl", str(NUM_INPUT), "--osl", str(NUM_OUTPUT),
            "--extra-inputs", "ignore_eos:true", "--extra-inputs", f"min_tokens:{NUM_OUTPUT}",
            "--request-count", str(REQUESTS), "--concurrency", str(STREAMS), "--ui", "none",
            "--artifact-dir", str(folder / "out"),
        ],
        folder,
        DO_NOT_TRACK="1",
    )  # fmt: skip
    result = json.loads((folder / "out" / "profile_export_aiperf.json").read_text())
    names = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "throughput": "output_token_throughput"}
    return {metric: float(result[name]["avg"]) for metric, name in names.items()}
