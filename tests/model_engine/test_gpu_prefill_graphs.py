"""Graphs of short steps with prompts on a GPU: as the same padded step without a graph, and as plain eager steps."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from atom.config import Config
from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.engine_core import EngineCore
from atom.model_engine.input_batch import SampledRows
from atom.model_engine.messages import EngineRequest
from atom.model_engine.padded_steps import StepShape
from atom.model_engine.prefill_graphs import PrefillGraphs
from atom.sampling_params import SamplingParams
from tests.model_engine.test_gpu_engine import answers, cut_into, prompts, run
from tests.model_engine.test_profiler import events_of
from tests.models.drive import Driver, make_runner

pytestmark = pytest.mark.gpu

SIZES = [16, 64, 256]
ON_GPU: dict[str, Any] = {"device": "cuda", "kv_cache_memory": 64 << 20}


@pytest.fixture(autouse=True)
def _free_memory() -> Iterator[None]:
    yield
    gc.collect()
    torch.cuda.empty_cache()


@pytest.mark.parametrize(
    ("parts", "cache", "dtype"),
    [(None, "bf16", "bfloat16"), (None, "fp8", "bfloat16"), (1, "bf16", "float32")],
)
def test_a_graph_is_its_step_bit_for_bit(
    parts: int | None, cache: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits, tokens and the whole cache, of prompts alone, chunks after contexts, and both beside decodes."""
    cut_into(parts, monkeypatch)
    runner = make_runner(
        Config.resolve("atom-tiny").model_path, dtype=dtype, max_model_len=256, block_size=16, kv_cache_dtype=cache,
        cudagraph_prefill_sizes=SIZES, **ON_GPU,
    )  # fmt: skip
    graphs = runner.graphs[1]
    assert isinstance(graphs, PrefillGraphs)
    caches = [layer._kv_cache for layer in runner.model.attention_layers()]
    used: set[StepShape] = set()

    def compared(batch: ScheduledBatch, sampled: SampledRows) -> tuple[torch.Tensor, torch.Tensor]:
        slots = runner.inputs.last_tokens.clone()
        found = [x.clone() for x in PrefillGraphs.run(graphs, batch, sampled)]
        written = [cache.clone() for cache in caches]
        shape = graphs._shape(batch)
        used.add(shape)
        runner.inputs.last_tokens.copy_(slots)
        wanted = graphs._sample(shape, graphs._graphs[shape].packed)
        for mine, theirs in zip(found, wanted, strict=True):
            assert torch.equal(mine, theirs[: len(mine)])
        for mine, theirs in zip(written, caches, strict=True):
            assert torch.equal(mine.view(torch.uint8), theirs.view(torch.uint8))
        return found[0], found[1]

    graphs.run = compared  # type: ignore[method-assign]  # watched by the test
    driver = Driver(runner)
    sequences = [driver.add(prompt) for prompt in prompts(12, 100, 1000)]
    for count, chunk in ((1, 200), (3, 40), (8, 19), (12, 33), (12, 100)):
        driver.step(sequences[:count], chunk)
    driver.generate(sequences, 4, chunk=50)
    long = driver.add([*range(1, 200)])
    for chunk in (10, 50, 139):
        driver.step([*sequences, long], chunk)
    assert {shape.num_decodes for shape in used} == {0, 8, 15}
    assert {shape.num_tokens for shape in used} == set(SIZES)


def test_greedy_answers_are_those_of_eager_steps() -> None:
    given = prompts(40, 200, 1000)
    settings: dict[str, Any] = {"dtype": "float32", "device": "cuda", "kv_cache_memory": 1 << 30}
    wanted = run(given, 24, enforce_eager=True, **settings)
    assert run(given, 24, cudagraph_prefill_sizes=SIZES, **settings) == wanted
    chunks = {**settings, "max_num_batched_tokens": 64}
    assert run(given, 24, cudagraph_prefill_sizes=[16, 64], **chunks) == wanted


def test_requests_that_come_one_by_one_answer_as_alone() -> None:
    """Mixed steps of all kinds: sampled and scored requests between greedy ones, a small cache that preempts."""
    core = EngineCore.create(
        Config.resolve(
            "atom-tiny", max_model_len=512, max_num_seqs=32, block_size=16, max_num_batched_tokens=256,
            dtype="float32", device="cuda", kv_cache_memory=24 << 20, cudagraph_prefill_sizes=SIZES,
        )
    )  # fmt: skip
    requests = []
    for i, prompt in enumerate(prompts(60, 120, 1000)):
        sampling = SamplingParams(
            temperature=0.0 if i % 3 else 1.0, seed=i, ignore_eos=True, max_tokens=40 + i % 50,
            prompt_logprobs=1 if i % 10 == 5 else None, repetition_penalty=1.2 if i % 10 == 1 else 1.0,
        )  # fmt: skip
        requests.append(EngineRequest(str(i), prompt, sampling))
    found: dict[str, list[int]] = {}
    waiting = list(requests)
    try:
        while waiting or core.has_work:
            for request in waiting[:2]:
                core.add(request)
            del waiting[:2]
            for delta in core.step():
                assert delta.finish_reason in (None, "length"), delta.error
                found.setdefault(delta.request_id, []).extend(delta.token_ids)
        for request in [request for request in requests if request.sampling.is_greedy][::4]:
            again = EngineRequest(f"again {request.request_id}", request.prompt_token_ids, request.sampling)
            assert answers(core, [again])[again.request_id] == found[request.request_id]
        assert core.stats().num_blocks_used == 0
    finally:
        core.shutdown()


def test_captures_are_traced(tmp_path: Path) -> None:
    make_runner(
        Config.resolve("atom-tiny").model_path, device="cuda", max_model_len=512, block_size=16, max_num_seqs=4,
        kv_cache_memory=1 << 26, torch_profiler_dir=tmp_path, mark_trace=True, cudagraph_prefill_sizes=[16],
    )  # fmt: skip
    folder = tmp_path / "rank_0" / "capture_traces"
    prefills = sorted(file.name for file in folder.iterdir() if "_q_16_" in file.name)
    assert prefills == ["bs_4_q_16_rank0.json.gz", "bs_7_q_16_rank0.json.gz"]
    names = [str(event.get("name")) for event in events_of(folder, prefills[1])]
    assert "capture_graph_bs_7" in names
    assert any("BeginCapture" in name for name in names)
