"""The whole engine on a GPU: the same greedy tokens as the CPU's reference, graphs equal to eager, nothing leaked."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from atom.config import Config
from atom.model_engine.engine_core import EngineCore
from atom.model_engine.graph_capture import unowned
from atom.model_engine.input_batch import is_even
from atom.model_engine.messages import EngineRequest
from atom.sampling_params import SamplingParams
from tests.model_engine.test_profiler import events_of
from tests.models.drive import Driver, make_runner
from tests.models.tiny import SIZES, VARIANTS, make_model, save_model

pytestmark = pytest.mark.gpu

_TINY: dict[str, Any] = {"max_model_len": 512, "max_num_seqs": 16, "block_size": 16, "enable_prefix_caching": True}
_ON_GPU: dict[str, Any] = {"device": "cuda", "kv_cache_memory": 1 << 30}


@pytest.fixture(autouse=True)
def _free_memory() -> Iterator[None]:
    yield
    gc.collect()
    torch.cuda.empty_cache()


def cut_into(parts: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode attention with sequences of equal length in so many parts; 1: as in large batches, None: as it chooses."""
    from atom.model_ops.kernels.triton import shares

    if parts is not None:
        monkeypatch.setattr(shares, "num_parts", lambda num_tokens, num_kv_heads: parts)


def answers(
    core: EngineCore, requests: list[EngineRequest], aborted: frozenset[str] = frozenset()
) -> dict[str, list[int]]:
    """Token ids by request; the `aborted` are ended after their first token."""
    found: dict[str, list[int]] = {}
    waiting = {request.request_id for request in requests}
    for request in requests:
        core.add(request)
    while waiting:
        for delta in core.step():
            found.setdefault(delta.request_id, []).extend(delta.token_ids)
            if delta.finish_reason is not None:
                assert delta.finish_reason in ("length", "abort"), delta.error
                waiting.discard(delta.request_id)
            elif delta.request_id in aborted and delta.request_id in waiting:
                core.abort([delta.request_id])
                waiting.discard(delta.request_id)
    return found


def prompts(count: int, longest: int, vocab: int) -> list[list[int]]:
    random = np.random.default_rng(5)
    return [random.integers(1, vocab, int(random.integers(1, longest))).tolist() for _ in range(count)]


def run(given: list[list[int]], max_tokens: int = 48, **settings: Any) -> list[list[int]]:
    """Greedy answers of atom-tiny."""
    core = EngineCore.create(Config.resolve("atom-tiny", **{**_TINY, **settings}))
    try:
        sampling = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=True)
        found = answers(core, [EngineRequest(str(i), prompt, sampling) for i, prompt in enumerate(given)])
        return [found[str(i)] for i in range(len(given))]
    finally:
        core.shutdown()


def test_atom_tiny_answers_as_on_the_cpu() -> None:
    given = prompts(20, 200, 1000)
    on_cpu = run(given, device="cpu", dtype="float32", kv_cache_memory=256 << 20)
    assert run(given, dtype="float32", **_ON_GPU) == on_cpu
    assert run(given, dtype="float32", enforce_eager=True, **_ON_GPU) == on_cpu


@pytest.mark.parametrize("variant", VARIANTS)
def test_greedy_tokens_are_those_of_transformers(variant: str, tmp_path: Path) -> None:
    model = make_model(variant)
    runner = make_runner(save_model(model, tmp_path), max_model_len=256, **_ON_GPU)
    assert runner.kernels.choice["attention_decode"] == "triton"
    driver = Driver(runner)
    sequences = [driver.add(prompt) for prompt in prompts(7, 60, SIZES["vocab_size"])]
    driver.generate(sequences, 24, chunk=19)
    for sequence in sequences:
        with torch.inference_mode():
            logits = model(torch.tensor([sequence.tokens])).logits[0, sequence.num_prompt - 1 : -1]
        assert sequence.output == logits.argmax(-1).tolist()


@pytest.mark.parametrize(
    ("parts", "cache", "lens"),
    [
        (None, "bf16", (50, 60)), (None, "fp8", (50, 60)), (1, "bf16", (50, 60)),
        (None, "bf16", (1, 200)), (None, "fp8", (1, 200)), (1, "bf16", (1, 200)),
    ],
)  # fmt: skip
def test_graphs_equal_eager_bit_for_bit(
    parts: int | None, cache: str, lens: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits of decode steps of even and of uneven lengths, in batches as large as a captured graph, in bfloat16."""
    cut_into(parts, monkeypatch)
    counts = np.linspace(*lens, 8).astype(int)
    counts[:-1] = np.minimum(counts[:-1], counts[0] + 10)
    assert is_even(counts) == is_even(counts + 12) == (lens == (50, 60))
    given = [[*range(5, 5 + count)] for count in counts.tolist()]
    found = []
    for eager in (False, True):
        runner = make_runner(
            Config.resolve("atom-tiny").model_path, dtype="bfloat16", max_model_len=256, block_size=16,
            enforce_eager=eager, kv_cache_dtype=cache, cudagraph_prefill_sizes=(), **_ON_GPU,
        )  # fmt: skip
        assert bool(runner.graphs) is not eager
        seen: list[torch.Tensor] = []
        sample = runner._sample

        def watched(raw: torch.Tensor, *rest: Any, sample: Any = sample, seen: Any = seen, **named: Any) -> None:
            seen.append(raw.clone())
            sample(raw, *rest, **named)

        runner._sample = watched  # type: ignore[method-assign]  # watched by the test
        driver = Driver(runner)
        sequences = [driver.add(prompt) for prompt in given]
        driver.generate(sequences, 12)
        found.append((seen, [s.output for s in sequences]))
        del runner, driver
    assert found[0][1] == found[1][1]
    assert len(found[0][0]) == len(found[1][0]) == 12
    assert all(torch.equal(one, other) for one, other in zip(found[0][0], found[1][0], strict=True))


def test_a_padded_graph_writes_nothing_for_its_padding() -> None:
    """Three rows in a graph of four, next to sequences that pause: what those hold must not change."""
    given = prompts(5, 60, 1000)
    alone = [run([prompt], 24, dtype="float32", **_ON_GPU)[0] for prompt in given[:2]]
    together = run(given, 24, dtype="float32", cudagraph_capture_sizes=[16], **_ON_GPU)
    assert together[:2] == alone


def test_mixed_load_leaks_nothing() -> None:
    """Random lengths, sampling, log probabilities and aborts over a cache so small that sequences are preempted."""
    settings = {**_TINY, "max_num_seqs": 32, "max_num_batched_tokens": 256, "dtype": "float32", "device": "cuda"}
    core = EngineCore.create(Config.resolve("atom-tiny", **settings, kv_cache_memory=24 << 20))
    random = np.random.default_rng(1)
    given = prompts(120, 300, 1000)
    requests, greedy = [], []
    for i, prompt in enumerate(given):
        is_greedy = i % 3 != 0
        sampling = SamplingParams(
            temperature=0.0 if is_greedy else 1.0, top_p=1.0 if is_greedy else 0.9, seed=i, ignore_eos=True,
            max_tokens=int(random.integers(1, 120)), logprobs=2 if i % 7 == 0 else None,
        )  # fmt: skip
        requests.append(EngineRequest(str(i), prompt, sampling))
        greedy += [i] if is_greedy and i % 5 else []
    try:
        found = answers(core, requests, frozenset(str(i) for i in range(0, 120, 5)))
        while core.has_work:
            core.step()
        stats = core.stats()
        assert (stats.num_running, stats.num_waiting, stats.num_blocks_used) == (0, 0, 0)
        assert stats.preemptions > 0
        memory = torch.cuda.memory_allocated()
        for i in greedy[:20]:
            request = EngineRequest(f"again {i}", given[i], requests[i].sampling)
            assert answers(core, [request])[request.request_id] == found[str(i)]
        assert torch.cuda.memory_allocated() <= memory + (1 << 20)
    finally:
        core.shutdown()


def test_too_large_a_step_says_what_to_change() -> None:
    # With little left for this process, whatever others hold, the largest step can not run.
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (600 << 20)) / total)
    try:
        with pytest.raises(MemoryError, match="--max-num-batched-tokens"):
            make_runner(
                Config.resolve("atom-tiny").model_path, device="cuda", max_num_batched_tokens=1 << 20,
                max_num_seqs=2048, max_model_len=512,
                block_size=16, kv_cache_memory=1 << 28,
            )  # fmt: skip
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_every_capture_leaves_a_trace_of_its_kernels(tmp_path: Path) -> None:
    make_runner(
        Config.resolve("atom-tiny").model_path, device="cuda", max_model_len=512, block_size=16, max_num_seqs=4,
        kv_cache_memory=1 << 26, torch_profiler_dir=tmp_path, mark_trace=True, cudagraph_prefill_sizes=(),
    )  # fmt: skip
    folder = tmp_path / "rank_0" / "capture_traces"
    assert sorted(file.name for file in folder.iterdir()) == [f"bs_{n}_q_1_rank0.json.gz" for n in (1, 2, 4)]
    events = events_of(folder, "bs_4_q_1_rank0.json.gz")
    names = [str(event.get("name")) for event in events]
    assert "capture_graph_bs_4" in names
    assert any(event.get("cat") == "kernel" for event in events)  # the warm-up forward
    assert any("BeginCapture" in name for name in names)


def test_outputs_of_graphs_share_their_memory() -> None:
    """A tensor over memory that it does not keep; and captures that take it again."""
    kept = torch.arange(8.0, device="cuda").view(2, 4)
    seen = unowned(kept)
    assert (seen.data_ptr(), seen.dtype, seen.tolist()) == (kept.data_ptr(), kept.dtype, kept.tolist())
    runner = make_runner(
        Config.resolve("atom-tiny").model_path, device="cuda", max_model_len=512, block_size=16, max_num_seqs=256,
        kv_cache_memory=1 << 26, cudagraph_prefill_sizes=(),
    )  # fmt: skip
    outputs = runner.graphs[0].outputs()  # type: ignore[attr-defined]  # decode graphs
    taken: set[int] = set()
    for _, _, logits in outputs.values():
        taken.update(range(logits.data_ptr(), logits.data_ptr() + logits.nbytes, logits.shape[1] * 4))
    # In rows, where none that overlap lie between one another's.
    assert len(taken) < sum(outputs) / 2
