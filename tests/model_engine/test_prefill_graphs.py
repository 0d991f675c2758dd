"""Graphs of steps with prefill rows, as far as a CPU can show: padded steps compute what plain ones do, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.model_runner import ModelRunner
from atom.model_engine.padded_steps import StepShape
from atom.model_engine.prefill_graphs import PrefillGraphs
from atom.sampling_params import SamplingParams
from tests.model_engine.graphs_on_cpu import runner_with_graphs
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


@settings(max_examples=25, deadline=None)
@given(mix=MIXES, is_greedy=st.booleans())
def test_any_mix_is_as_eager(
    mix: tuple[list[int], list[tuple[int, int]]], is_greedy: bool, eager: ModelRunner, graphed: ModelRunner
) -> None:
    sampling = GREEDY if is_greedy else SamplingParams(temperature=0.8, max_tokens=64, logprobs=2, ignore_eos=True)
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
