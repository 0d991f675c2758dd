"""Graphs that draw, as far as a CPU can show: the tokens are those of steps without, whatever rows a batch has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from atom.model_engine.draw_graphs import DrawGraphs, capture_draws
from atom.model_engine.grammars import Grammars
from atom.model_engine.input_batch import SampledRows
from atom.model_engine.model_runner import ModelRunner
from atom.model_engine.token_masks import TokenMasks
from atom.model_ops.kernels.select import select_kernels
from atom.sampling_params import AnswerGrammar, SamplingParams
from tests.fakes.byte_tokenizer import byte_tokenizer
from tests.model_engine.graphs_on_cpu import runner_with_graphs
from tests.models.drive import GREEDY, Driver, make_runner
from tests.models.tiny import make_model, save_model

SETTINGS: dict[str, Any] = {"max_num_seqs": 5, "max_model_len": 64, "kv_cache_memory": 1 << 20}
NUM_TOKENS = 12


def drawn(**given: Any) -> SamplingParams:
    return SamplingParams(**{"temperature": 0.9, "max_tokens": 64, "ignore_eos": "grammar" not in given, **given})


COMMON, NUCLEUS = drawn(top_k=20, top_p=0.9), drawn(temperature=1.5, top_p=0.8, min_p=0.01)
WORDS = AnswerGrammar("start: /[a-c]{30}/")


@pytest.fixture(scope="module")
def runners(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelRunner, ModelRunner]:
    """One without graphs, and one with them."""
    torch.set_num_threads(1)
    folder = save_model(make_model("qwen2-window", num_hidden_layers=2), Path(tmp_path_factory.mktemp("model")))
    with pytest.MonkeyPatch.context() as patch:
        graphed = runner_with_graphs(
            folder, patch, cudagraph_prefill_sizes=(), cudagraph_capture_sizes=(1, 2, 5), **SETTINGS
        )
    return make_runner(folder, **SETTINGS), graphed


@pytest.mark.parametrize(
    ("rows", "num_drawn"),
    [
        ([COMMON], NUM_TOKENS - 1),
        ([COMMON, NUCLEUS, drawn()], NUM_TOKENS - 1),
        ([GREEDY, COMMON, GREEDY, NUCLEUS, GREEDY], NUM_TOKENS - 1),
        ([GREEDY, GREEDY], 0),
        ([COMMON, drawn(logprobs=2)], NUM_TOKENS - 1),
        ([COMMON, drawn(repetition_penalty=1.3)], 0),  # of other logits than the graph's
        ([COMMON, drawn(grammar=WORDS)], NUM_TOKENS - 1),
        ([GREEDY, drawn(grammar=WORDS)], 0),  # the graph's greedy tokens are from before the masks
        ([COMMON, drawn(grammar=WORDS, logprobs=2)], 0),
    ],
)
def test_tokens_are_those_of_steps_without_graphs(
    rows: list[SamplingParams], num_drawn: int, runners: tuple[ModelRunner, ModelRunner],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    calls: list[int] = []
    own = DrawGraphs.run

    def run(self: DrawGraphs, size: int, sampled: SampledRows) -> torch.Tensor:
        calls.append(size)
        return own(self, size, sampled)

    monkeypatch.setattr(DrawGraphs, "run", run)
    grammars = Grammars(byte_tokenizer, 199, (198,))
    outputs, logprobs = [], []
    for runner in runners:
        monkeypatch.setattr(runner, "masks", TokenMasks(5, grammars))
        driver = Driver(runner)
        sequences = [driver.add([5 + i, 17, 3, 99], sampling, 40 + i) for i, sampling in enumerate(rows)]
        driver.generate(sequences, NUM_TOKENS)
        outputs.append([sequence.output for sequence in sequences])
        logprobs.append([[entry.token_id for entry in sequence.logprobs] for sequence in sequences])
    grammars.shutdown()
    assert outputs[0] == outputs[1]
    assert logprobs[0] == logprobs[1]
    assert len(calls) == num_drawn


def test_kernels_that_wait_for_the_device_are_not_captured(runners: tuple[ModelRunner, ModelRunner]) -> None:
    graphed = runners[1]
    assert len(graphed.draws) == 1
    assert capture_draws(graphed.graphs, select_kernels("cpu"), graphed.inputs) == {}
