"""Tokens a second on this CPU, side by side with transformers' `generate`, in one run.

A Qwen3-0.6B shape with dummy weights in bf16; 128 tokens in, 64 out, greedy. Both sides alternate, medians count: on a
shared machine only ratios within one run say anything. `generate` answers one call at a time, so against concurrent
requests it is measured twice: one request after another (a rate that does not depend on their number), and all of them
as one padded batch, which a server could only do for requests that arrive together and have one length.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers

from atom.config import Config
from atom.model_engine.engine_core import EngineCore
from atom.model_engine.messages import EngineRequest
from atom.sampling_params import SamplingParams

NUM_INPUT, NUM_OUTPUT = 128, 64
BATCHES = (1, 4, 16)
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LEVEL = int(os.environ.get("BENCH_LEVEL", "0"))
SHAPE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 151936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
}


class Ours:
    """The engine core with its scheduler and executor, fed with token ids."""

    def __init__(self, folder: Path) -> None:
        self._core = EngineCore.create(
            Config.resolve(
                str(folder),
                device="cpu",
                load_dummy="xavier",
                max_model_len=512,
                enable_prefix_caching=False,
                level=LEVEL,
            )
        )
        self._sampling = SamplingParams(temperature=0.0, max_tokens=NUM_OUTPUT, ignore_eos=True)
        self._num_requests = 0

    def seconds(self, prompts: torch.Tensor) -> float:
        """Time from the first request to the last token of all."""
        start = time.perf_counter()
        for prompt in prompts.tolist():
            self._core.add(EngineRequest(str(self._num_requests), prompt, self._sampling))
            self._num_requests += 1
        num_tokens = 0
        while self._core.has_work:
            num_tokens += sum(len(delta.token_ids) for delta in self._core.step())
        assert num_tokens == len(prompts) * NUM_OUTPUT
        return time.perf_counter() - start

    def close(self) -> None:
        """Give the memory back."""
        self._core.shutdown()


class Theirs:
    """transformers' generate over one batch."""

    def __init__(self) -> None:
        config = transformers.Qwen3Config(**SHAPE, eos_token_id=None, bos_token_id=None, pad_token_id=0)
        self._model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()

    def seconds(self, prompts: torch.Tensor) -> float:
        """Time of one call."""
        start = time.perf_counter()
        with torch.inference_mode():
            ids = self._model.generate(
                prompts, max_new_tokens=NUM_OUTPUT, min_new_tokens=NUM_OUTPUT, do_sample=False, pad_token_id=0
            )
        assert ids.shape[1] == NUM_INPUT + NUM_OUTPUT
        return time.perf_counter() - start


def measure() -> dict[str, dict[int, float]]:
    """Median output tokens a second, by side and number of requests."""
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(1, SHAPE["vocab_size"], (max(BATCHES), NUM_INPUT), generator=generator)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps({**SHAPE, "eos_token_id": 0}))
        sides: dict[str, Ours | Theirs] = {"ours": Ours(Path(folder)), "theirs": Theirs()}
    for side in sides.values():
        side.seconds(prompts[:1])
    times: dict[str, dict[int, list[float]]] = {name: {size: [] for size in BATCHES} for name in sides}
    for _ in range(ROUNDS):
        for size in BATCHES:
            for name, side in sides.items():
                times[name][size].append(side.seconds(prompts[:size]))
    ours = sides["ours"]
    assert isinstance(ours, Ours)
    ours.close()
    return {
        name: {size: size * NUM_OUTPUT / statistics.median(found) for size, found in by_size.items()}
        for name, by_size in times.items()
    }


def decode_step_ms(level: int) -> float:
    """Median time of a step that decodes one sequence of the shipped model at a compilation level."""
    core = EngineCore.create(Config.resolve("atom-tiny", device="cpu", max_model_len=1024, level=level))
    core.add(EngineRequest("0", list(range(5, 69)), SamplingParams(temperature=0.0, max_tokens=400, ignore_eos=True)))
    ends = []
    while core.has_work:
        if core.step():
            ends.append(time.perf_counter())
    core.shutdown()
    return 1000 * statistics.median(after - before for before, after in itertools.pairwise(ends))


def run() -> list[dict[str, Any]]:
    """The rows of `make bench PART=engine`."""
    rates = measure()
    ours, theirs = rates["ours"], rates["theirs"]
    load = os.getloadavg()[0]
    rows: list[dict[str, Any]] = [
        {"name": "load of the machine at the end (1 min)", "value": load, "unit": "processes"}
    ]
    for size in BATCHES:
        rows.append({"name": f"0.6B bf16, {size} concurrent", "value": ours[size], "unit": "tokens/s"})
        rows.append({"name": f"transformers generate, batch of {size}", "value": theirs[size], "unit": "tokens/s"})
        one_by_one = {
            "name": f"{size} concurrent / generate, one after another",
            "value": ours[size] / theirs[1],
            "unit": "x",
        }
        bar = {1: {"bar": 1.0}, 16: {"bar": 3.0}}.get(size, {})
        rows.append({**one_by_one, **bar})
        if size > 1:
            name = f"{size} concurrent / generate, one batch of {size}"
            rows.append({"name": name, "value": ours[size] / theirs[size], "unit": "x"})
    for level in (0, 3):
        name = f"atom-tiny, decode step of one sequence, level {level}"
        rows.append({"name": name, "value": decode_step_ms(level), "unit": "ms", "bar": 3.0})
    return rows
