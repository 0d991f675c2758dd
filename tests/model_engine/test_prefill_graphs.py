"""Graphs of steps with prefill rows, as far as a CPU can show: padded steps compute what plain ones do, and no more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.model_engine.batch import ScheduledBatch, SlotAdmission
from atom.model_engine.grammars import Grammars
from atom.model_engine.model_runner import ModelRunner
from atom.model_engine.padded_steps import StepShape
from atom.model_engine.prefill_graphs import PrefillGraphs, default_sizes, step_shapes
from atom.model_engine.token_masks import TokenMasks
from atom.sampling_params import AnswerGrammar, SamplingParams
from tests.fakes.byte_tokenizer import byte_tokenizer
from tests.model_engine.graphs_on_cpu import runner_with_graphs, torch_kernels
from tests.models.drive import GREEDY, Driver, Running, make_runner
from tests.models.tiny import make_model, save_model

SIZES = (4, 12, 24)
SETTINGS: dict[str, Any] = {"max_num_seqs": 6, "max_model_len": 64, "kv_cache_memory": 1 << 20}
POISON = 1e4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    # A window, so that keys that have passed are left out.
    return save_model(make_model("qwen2-window", num_hidden_layers=2), Path(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def eager(folder: Path) -> ModelRunner:
    return make_runner(folder, **SETTINGS)


@pytest.fixture(scope="module")
def graphed(folder: Path) -> Iterator[ModelRunner]:
    with pytest.MonkeyPatch.context() as patch:
        yield runner_with_graphs(
            folder, patch, cudagraph_prefill_sizes=SIZES, cudagraph_capture_sizes=(2, 4), **SETTINGS
        )


def graphs_of(runner: ModelRunner) -> PrefillGraphs:
    found = runner.graphs[1]
    assert isinstance(found, PrefillGraphs)
    return found


@torch.inference_mode()
def filled_caches(runner: ModelRunner, value: float) -> list[torch.Tensor]:
    """Every layer's, all one value."""
    return [layer._kv_cache.fill_(value) for layer in runner.model.attention_layers()]


class Watched(Driver):
    """A driver over poisoned caches that keeps the logits of every step, and counts the graphs' steps."""

    def __init__(self, runner: ModelRunner, poison: float, patch: pytest.MonkeyPatch) -> None:
        super().__init__(runner)
        self.logits: list[torch.Tensor] = []
        self.shapes: list[StepShape] = []
        self.caches = filled_caches(runner, poison)
        own = ModelRunner._sample

        def sample(raw: torch.Tensor, *rest: Any, **named: Any) -> None:
            self.logits.append(raw.clone())
            own(runner, raw, *rest, **named)

        patch.setattr(runner, "_sample", sample)
        for graphs in runner.graphs[1:]:
            assert isinstance(graphs, PrefillGraphs)
            patch.setattr(graphs, "run", self._counted(graphs))

    def _counted(self, graphs: PrefillGraphs) -> Callable[..., Any]:
        def run(batch: ScheduledBatch, sampled: Any) -> Any:
            self.shapes.append(graphs._shape(batch))
            return PrefillGraphs.run(graphs, batch, sampled)

        return run


def drive(driver: Driver, lengths: list[int], steps: list[tuple[int, int]], sampling: SamplingParams) -> list[Running]:
    """Prompts of these lengths; a step is of the sequences in a mask of bits, chunks of so many tokens at most."""
    random = np.random.default_rng(4)
    sequences = [driver.add(random.integers(1, 199, length).tolist(), sampling, i) for i, length in enumerate(lengths)]
    for mask, chunk in steps:
        chosen = [s for i, s in enumerate(sequences) if mask >> i & 1 and len(s.tokens) < 60]
        if chosen:
            driver.step(chosen, chunk)
    return sequences


def compare(
    eager: ModelRunner, graphed: ModelRunner, lengths: list[int], steps: list[tuple[int, int]], sampling: SamplingParams
) -> list[StepShape]:
    """AssertionError where graphs differ from eager steps; the graphs that were used."""
    with pytest.MonkeyPatch.context() as patch:
        plain, padded = Watched(eager, POISON, patch), Watched(graphed, POISON, patch)
        wanted, found = (drive(driver, lengths, steps, sampling) for driver in (plain, padded))
        assert [s.tokens for s in found] == [s.tokens for s in wanted]
        for mine, theirs in zip(padded.logits, plain.logits, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=2e-4)
        # Places that no token of a sequence has been written to hold the poison in both.
        for mine, theirs in zip(padded.caches, plain.caches, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=2e-4)
        return padded.shapes


MIXES = st.tuples(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 63), st.sampled_from([1, 3, 4, 5, 12, 24, 60])), min_size=3, max_size=9),
)


SAMPLING = (
    GREEDY,
    SamplingParams(temperature=0.8, max_tokens=64, logprobs=2, ignore_eos=True),
    SamplingParams(temperature=0.0, max_tokens=64, repetition_penalty=1.3, logit_bias={7: 2.0}, ignore_eos=True),
)


@settings(max_examples=30)
@given(mix=MIXES, sampling=st.sampled_from(SAMPLING))
def test_any_mix_is_as_eager(
    mix: tuple[list[int], list[tuple[int, int]]], sampling: SamplingParams, eager: ModelRunner, graphed: ModelRunner
) -> None:
    compare(eager, graphed, *mix, sampling)


@pytest.mark.parametrize(
    ("lengths", "steps", "shapes"),
    [
        ([4], [(1, 99)], [(0, 4)]),  # exactly a graph's tokens, from nothing
        ([5], [(1, 99)], [(0, 12)]),
        ([24], [(1, 99), (1, 99)], [(0, 24)]),
        ([25], [(1, 99)], []),  # too many
        ([25], [(1, 13), (1, 13)], [(0, 24), (0, 12)]),  # the first chunk samples nothing, the second has a context
        ([1] * 6, [(63, 99)], [(0, 12)]),  # all rows
        ([3] * 6, [(31, 99), (63, 99)], [(0, 24), (5, 4)]),  # all decodes beside a prompt
        ([3, 2], [(1, 99), (3, 99)], [(0, 4), (5, 4)]),
        ([30, 1], [(1, 99), (3, 99), (3, 99)], [(5, 4)]),  # then decodes alone
    ],
)
def test_edges(
    lengths: list[int], steps: list[tuple[int, int]], shapes: list[tuple[int, int]], eager: ModelRunner,
    graphed: ModelRunner,
) -> None:  # fmt: skip
    used = compare(eager, graphed, lengths, steps, GREEDY)
    assert [(shape.num_decodes, shape.num_tokens) for shape in used] == shapes


@torch.inference_mode()
def test_padding_writes_nothing_at_all(graphed: ModelRunner) -> None:
    caches = filled_caches(graphed, float("nan"))
    slots = graphed.inputs.last_tokens[:-1].clone()
    graphs = graphs_of(graphed)
    for shape, graph in graphs._graphs.items():
        graph.packed.copy_(graphs._padding(shape))
        graph.graph.replay()
    assert all(cache.isnan().all() for cache in caches)
    assert torch.equal(graphed.inputs.last_tokens[:-1], slots)


def test_scored_prompts_run_without_a_graph(eager: ModelRunner, graphed: ModelRunner) -> None:
    scored = msgspec.structs.replace(GREEDY, prompt_logprobs=1)
    used = compare(eager, graphed, [4, 3], [(1, 99), (3, 99)], scored)
    assert used == []
    driver = Driver(graphed)
    sequences = [driver.add([5, 6, 7], scored), driver.add([5, 6, 7])]
    results = [driver.step([sequence]) for sequence in sequences]
    assert [len(result.prompt_logprobs.get(0, [])) for result in results] == [2, 0]


def batch(lens: list[int], num_decodes: int, contexts: list[int] | None = None, admissions: Any = ()) -> ScheduledBatch:
    """Row r in slot r."""
    ints = [np.array(x, dtype=np.int32) for x in (range(len(lens)), lens, contexts or [5] * len(lens))]
    tokens = np.ones(sum(lens[num_decodes:]), dtype=np.int32)
    every = np.ones(len(lens), dtype=np.bool_)
    return ScheduledBatch(0, *ints, every, num_decodes, tokens, np.empty((0, 3), np.int32), list(admissions))


def test_what_a_graph_can_run(graphed: ModelRunner) -> None:
    fits = graphs_of(graphed).fits
    assert fits(batch([24], 0))
    assert fits(batch([1, 1, 20, 4], 2))
    assert not fits(batch([25], 0))
    assert not fits(batch([], 0))
    assert not fits(batch([1, 1], 2))
    assert not fits(batch([2, 4], 1))  # drafts
    assert not fits(batch([1] * 7, 0))
    shape = StepShape(2, 2, 8)
    assert shape.holds(batch([1, 1, 4, 4], 2))
    assert not shape.holds(batch([1, 1, 1, 4], 3))
    assert not shape.holds(batch([1, 2, 2, 2], 1))


def test_a_prompt_to_be_scored_is_known_before_its_admission(graphed: ModelRunner) -> None:
    plain, scored = (
        SlotAdmission(0, [1] * 4, 4, [0], msgspec.structs.replace(GREEDY, prompt_logprobs=n), 0) for n in (None, 0)
    )
    assert graphs_of(graphed).fits(batch([4], 0, [0], [plain]))
    assert not graphs_of(graphed).fits(batch([4], 0, [0], [scored]))


def test_a_step_is_labelled_with_its_graph(graphed: ModelRunner) -> None:
    sizes = [graphed.graph_batch_size(batch(lens, n)) for lens, n in (([1, 1, 1], 3), ([9], 0), ([1, 9], 1), ([30], 0))]
    assert sizes == [4, 6, 11, None]


@pytest.mark.parametrize(
    ("asked", "num_seqs", "num_tokens", "shapes"),
    [
        ((64, 16, 16), 256, 8192, [(d, 8, p) for d in (0, 8, 32, 128) for p in (16, 64)]),
        ((16, 64), 20, 32, [(d, 8, p) for d in (0, 8, 19) for p in (16, 32)]),
        ((16,), 9, 16, [(0, 8, 16), (8, 8, 16)]),
        ((1, 0, 2), 1, 16, [(0, 1, 2)]),
        ((), 16, 16, []),
    ],
)
def test_shapes(asked: tuple[int, ...], num_seqs: int, num_tokens: int, shapes: list[tuple[int, int, int]]) -> None:
    assert step_shapes(asked, num_seqs, num_tokens) == [StepShape(*shape) for shape in shapes]


def test_every_capture_is_told_and_traced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    runner_with_graphs(
        folder, monkeypatch, cudagraph_prefill_sizes=(8, 4), cudagraph_capture_sizes=(2,), mark_trace=True,
        torch_profiler_dir=tmp_path, **SETTINGS,
    )  # fmt: skip
    files = sorted(file.name for file in (tmp_path / "rank_0" / "capture_traces").iterdir())
    names = [(2, 1), (6, 4), (6, 8), (11, 4), (11, 8)]
    assert files == sorted(f"bs_{rows}_q_{tokens}_rank0.json.gz" for rows, tokens in names)
    lines = [record.message for record in caplog.records if record.message.startswith("captured")]
    told = [line.split(",")[0] for line in lines]
    assert told == ["captured 1 decode graphs", "captured 4 prefill graphs", "captured 1 draw graphs"]


def test_there_are_graphs_unless_they_are_not_wanted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atom.model_engine.step_graphs.default_sizes", lambda model: [4])
    assert len(runner_with_graphs(folder, monkeypatch, **SETTINGS).graphs) == 2
    assert len(runner_with_graphs(folder, monkeypatch, cudagraph_prefill_sizes=(), **SETTINGS).graphs) == 1


@pytest.mark.parametrize(
    ("hidden", "intermediate", "heads", "largest"),
    [
        (1024, 3072, 16, 2048),
        (2560, 9728, 32, 1024),
        (4096, 12288, 32, 512),
        (8192, 28672, 64, 128),
        (1 << 15, 1 << 15, 256, 16),
    ],
)
def test_large_models_have_small_graphs(hidden: int, intermediate: int, heads: int, largest: int) -> None:
    """Shapes of 0.6, 4, 8 and 70 billion parameters, and one larger than any."""
    model = SimpleNamespace(
        hidden_size=hidden, intermediate_size=intermediate, num_heads=heads, num_kv_heads=8, head_dim=128
    )
    assert max(default_sizes(model), default=0) == largest


@pytest.mark.parametrize(
    ("backend", "sizes", "why"),
    [("aiter", (4,), "aiter plans the attention of prompts on the host"), ("triton", (1,), "no step has such a size")],
)
def test_what_was_asked_for_in_vain_is_told(
    backend: str, sizes: tuple[int, ...], why: str, folder: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    kernels = torch_kernels()
    kernels.choice["attention_plan"] = backend
    monkeypatch.setattr("tests.model_engine.graphs_on_cpu.torch_kernels", lambda: kernels)
    runner = runner_with_graphs(folder, monkeypatch, cudagraph_prefill_sizes=sizes, **SETTINGS)
    assert len(runner.graphs) == 1
    assert f"--cudagraph-prefill-sizes: no prefill graphs, {why}" in caplog.messages


def test_out_of_memory_says_what_to_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(PrefillGraphs, "_capture", fail)
    with pytest.raises(MemoryError, match=r"while capturing prefill graphs .*fewer --cudagraph-prefill-sizes"):
        runner_with_graphs(folder, monkeypatch, cudagraph_prefill_sizes=(4,), **SETTINGS)


@pytest.mark.parametrize("num_top", [None, 2])
def test_a_grammar_holds_over_a_graph_s_greedy_tokens_and_log_probabilities_are_the_model_s(
    num_top: int | None, eager: ModelRunner, graphed: ModelRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammars = Grammars(byte_tokenizer, 199, (198,))
    enforced = SamplingParams(
        temperature=0.0, max_tokens=64, logprobs=num_top, grammar=AnswerGrammar("start: /[a-c]{20}/")
    )
    found = []
    for runner in (eager, graphed):
        monkeypatch.setattr(runner, "masks", TokenMasks(6, grammars))
        driver = Driver(runner)
        sequences = [driver.add([5, 17, 3, 99], sampling) for sampling in (GREEDY, enforced)]
        driver.generate(sequences, 12)
        found.append(sequences)
    grammars.shutdown()
    for free, held in found:
        assert free.output == found[0][0].output and held.output == found[0][1].output
        assert set(held.output) <= set(b"abc") and not set(free.output) <= set(b"abc")
        assert len(held.logprobs) == (0 if num_top is None else 12)
        # The grammar forbids what the model would have said; of the model's own order nothing is missing.
        assert not any(set(entry.top_ids) <= set(b"abc") for entry in held.logprobs)
        assert all(entry.rank > 1 and entry.logprob > -100 for entry in held.logprobs)
