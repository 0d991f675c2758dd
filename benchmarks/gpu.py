"""The engine on one GPU: time a decoded token and of a prefill, dummy weights, with the floors of the same run.

Rows: for Qwen3-0.6B and Qwen3-8B shapes in bfloat16, 1024 tokens in and 128 out, greedy, the milliseconds a token at
each batch size, and beside it the floor: all products of a step in one graph, and the bytes of the KV cache at the
measured read bandwidth. Prefill cells are host time from the request to its first token. `ATOM_BENCH_MODELS` and
`ATOM_BENCH_BATCHES`, lists with commas, choose a part. `ATOM_BENCH_PROFILE=1` prints the kernels of a decode step.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from atom.config import Config
from atom.model_engine.engine_core import EngineCore
from atom.model_engine.messages import EngineRequest
from atom.sampling_params import SamplingParams

PROMPT, ANSWER = 1024, 128
_BATCHES = (1, 8, 32, 128, 256)
_PREFILLS = ((1, 8192), (8, 2048), (1, 1024), (1, 128))


@dataclass(frozen=True)
class Shape:
    """A Qwen3 model; the bars are milliseconds. quantization: fp8 for 8-bit weights in all products but the head's."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    tied: bool
    decode_bars: dict[int, float]
    prefill_bars: dict[tuple[int, int], float]
    kv_heads: int = 8
    head_dim: int = 128
    vocab: int = 151936
    quantization: str | None = None

    def config(self) -> dict[str, Any]:
        """config.json."""
        return {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": self.hidden,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim, "intermediate_size": self.intermediate, "vocab_size": self.vocab,
            "tie_word_embeddings": self.tied, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
            "rope_theta": 1e6, "hidden_act": "silu", "attention_bias": False, "torch_dtype": "bfloat16",
            "eos_token_id": 151645,
        }  # fmt: skip

    def weights(self) -> list[tuple[int, int]]:
        """[outputs, inputs] of every product of a step."""
        width = self.heads * self.head_dim
        qkv = width + 2 * self.kv_heads * self.head_dim
        layer = [(qkv, self.hidden), (self.hidden, width), (2 * self.intermediate, self.hidden)]
        return [*[*layer, (self.hidden, self.intermediate)] * self.layers, (self.vocab, self.hidden)]

    def kv_bytes(self, tokens: int) -> int:
        """Bytes that so many tokens hold in the cache."""
        return tokens * 2 * self.kv_heads * self.head_dim * 2 * self.layers


SHAPES = {
    "0.6B": Shape(
        1024, 28, 16, 3072, True, {1: 1.6, 8: 1.8, 32: 2.9, 128: 5.4, 256: 9.5},
        {(1, 8192): 35.0, (8, 2048): 44.0, (1, 128): 6.0},
    ),
    "8B": Shape(
        4096, 36, 32, 12288, False, {1: 5.0, 8: 5.3, 32: 6.3, 128: 10.7, 256: 18.0},
        {(1, 8192): 215.0, (8, 2048): 380.0},
    ),
}  # fmt: skip
SHAPES["8B fp8 weights"] = replace(
    SHAPES["8B"], quantization="fp8", decode_bars={1: 3.6, 8: 3.9, 32: 5.4, 128: 9.2, 256: 15.8}, prefill_bars={}
)


def run() -> list[dict[str, Any]]:
    """Every row; ValueError without a GPU."""
    if not torch.cuda.is_available():
        raise ValueError("this benchmark needs a GPU")
    bandwidth = read_bandwidth()
    rows = [row("memory, read", bandwidth / 1e9, "GB/s"), row("bf16 product, 8192^3", product_rate() / 1e12, "TFLOP/s")]
    report(rows)
    names = os.environ.get("ATOM_BENCH_MODELS", ",".join(SHAPES)).split(",")
    batches = [int(n) for n in os.environ.get("ATOM_BENCH_BATCHES", ",".join(map(str, _BATCHES))).split(",")]
    for name in names:
        rows += measure(name, SHAPES[name], batches, bandwidth)
    return rows


def row(name: str, value: float, unit: str, bar: float | None = None) -> dict[str, Any]:
    """A row of the table."""
    return {"name": name, "value": value, "unit": unit, **({} if bar is None else {"bar": f"<= {bar:g}"})}


def report(rows: list[dict[str, Any]]) -> None:
    """Rows as they come, so that a run that is cut short has shown something."""
    for one in rows:
        print(f"  {one['name']:44} {one['value']:9.3f} {one['unit']} {one.get('bar', '')}", file=sys.stderr, flush=True)


def measure(name: str, shape: Shape, batches: list[int], bandwidth: float) -> list[dict[str, Any]]:
    """All cells of one model."""
    floors = product_floors(shape, batches)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(shape.config()))
        started = time.monotonic()
        core = EngineCore.create(
            Config.resolve(
                folder, load_dummy="xavier", device="cuda", max_model_len=9216, max_num_seqs=max(batches),
                max_num_batched_tokens=16384, enable_prefix_caching=False, enable_log_stats=False,
                quantization=shape.quantization,
            )
        )  # fmt: skip
        rows.append(row(f"{name}, start to ready", time.monotonic() - started, "s"))
        report(rows)
    try:
        for count, length in _PREFILLS:
            times = [prefill(core, shape, count, length) for _ in range(4)][1:]
            bar = shape.prefill_bars.get((count, length))
            rows.append(row(f"{name}, prefill {count}x{length}", 1e3 * statistics.median(times), "ms", bar))
            report(rows[-1:])
        for batch in batches:
            decode(core, shape, batch, 8)
            found = 1e3 * decode(core, shape, batch, ANSWER)
            floor = floors[batch] + 1e3 * shape.kv_bytes(batch * (PROMPT + ANSWER // 2)) / bandwidth
            rows.append(row(f"{name}, B={batch}, time a token", found, "ms", shape.decode_bars.get(batch)))
            rows.append(row(f"{name}, B={batch}, floor", floor, "ms"))
            report(rows[-2:])
            if os.environ.get("ATOM_BENCH_PROFILE") and batch in (batches[0], batches[-1]):
                profile(core, shape, batch)
    finally:
        core.shutdown()
        del core
        gc.collect()
        torch.cuda.empty_cache()
    return rows


def requests(shape: Shape, count: int, length: int, answer: int) -> list[EngineRequest]:
    """Random prompts."""
    ids = np.random.default_rng().integers(0, shape.vocab, (count, length))
    sampling = SamplingParams(temperature=0.0, max_tokens=answer, ignore_eos=True)
    return [EngineRequest(f"{time.monotonic_ns()}-{i}", prompt.tolist(), sampling) for i, prompt in enumerate(ids)]


def prefill(core: EngineCore, shape: Shape, count: int, length: int) -> float:
    """Seconds from the first request to the last one's only token."""
    given = requests(shape, count, length, 1)
    start = time.perf_counter()
    for request in given:
        core.add(request)
    left = count
    while left:
        left -= sum(delta.finish_reason is not None for delta in core.step())
    return time.perf_counter() - start


def decode(core: EngineCore, shape: Shape, batch: int, answer: int) -> float:
    """Seconds a token between the last sequence's first token and the first sequence's last."""
    given = requests(shape, batch, PROMPT, answer)
    for request in given:
        core.add(request)
    counts: dict[str, int] = {}
    begin = begun = ended = 0.0
    left = batch
    while left:
        deltas = core.step()
        now = time.perf_counter()
        for delta in deltas:
            counts[delta.request_id] = counts.get(delta.request_id, 0) + len(delta.token_ids)
            left -= delta.finish_reason is not None
        if not begin and len(counts) == batch:
            begin, begun = now, max(counts.values())
        if not ended and begin and counts and max(counts.values()) == answer:
            ended = now
    return (ended - begin) / max(1, answer - begun)


def profile(core: EngineCore, shape: Shape, batch: int) -> None:
    """Print what the kernels of a decode step take."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as recorded:
        decode(core, shape, batch, 40)
    events = [e for e in recorded.key_averages() if e.self_device_time_total > 0]
    events.sort(key=lambda e: -e.self_device_time_total)
    print(f"  kernels of {batch} prompts and 40 tokens each", file=sys.stderr)
    for event in events[:22]:
        each = event.self_device_time_total / event.count
        print(
            f"   {event.self_device_time_total / 1e3:9.2f} ms {event.count:6d} x {each:8.1f} us  {event.key[:90]}",
            file=sys.stderr,
        )


def seconds(function: Callable[[], Any], repeats: int = 10) -> float:
    """Median time of a call on the device."""
    for _ in range(3):
        function()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)


def read_bandwidth() -> float:
    """Bytes a second that a sum over 4 GB reads."""
    data = torch.randn(1 << 30, device="cuda")
    return data.numel() * 4 / seconds(lambda: data.sum())


def product_rate() -> float:
    """Operations a second of a large bf16 product of random numbers."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / seconds(lambda: a @ b)


@torch.inference_mode()
def product_floors(shape: Shape, batches: list[int]) -> dict[int, float]:
    """Milliseconds that the products of a step take, weights distinct, in one graph, by batch size."""
    weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for n, k in shape.weights()]
    if shape.quantization is not None:
        weights[:-1] = [weight.to(torch.float8_e4m3fn) for weight in weights[:-1]]
    found = {}
    for batch in batches:
        inputs = {k: torch.randn(batch, k, device="cuda", dtype=torch.bfloat16) for _, k in shape.weights()}

        products = [product(inputs[weight.shape[1]], weight) for weight in weights]

        def step(products: list[Callable[[], torch.Tensor]] = products) -> None:
            for call in products:
                call()

        step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        found[batch] = 1e3 * seconds(graph.replay)
        del graph
    gc.collect()
    torch.cuda.empty_cache()
    return found


def product(x: torch.Tensor, weight: torch.Tensor) -> Callable[[], torch.Tensor]:
    """The product by the library; of an fp8 weight, with an input that is fp8 already and scales by row."""
    if weight.dtype == torch.bfloat16:
        return lambda: F.linear(x, weight)
    by_token, by_output = (torch.ones(len(rows), 1, device=x.device) for rows in (x, weight))
    rounded = x.to(weight.dtype)
    return lambda: torch._scaled_mm(
        rounded, weight.t(), by_token, by_output.t(), out_dtype=x.dtype, use_fast_accum=True
    )
