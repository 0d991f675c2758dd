"""What a step's result holds: tokens by seed, log probabilities, penalties, whatever else is in the batch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from atom.model_engine.model_runner import ModelRunner, platform_of, resolve_device
from atom.sampling_params import SamplingParams
from tests.models.drive import GREEDY, Driver, Running, make_runner
from tests.models.tiny import make_model, save_model

PROMPT = [5, 17, 3, 99, 42, 8, 61, 7, 150, 12, 77]


@pytest.fixture(scope="module")
def model() -> transformers.PreTrainedModel:
    torch.set_num_threads(1)
    return make_model("qwen3")


@pytest.fixture(scope="module")
def runner(model: transformers.PreTrainedModel, tmp_path_factory: pytest.TempPathFactory) -> ModelRunner:
    made = make_runner(save_model(model, Path(tmp_path_factory.mktemp("model"))), max_model_len=128)
    made.warm_up()
    return made


def params(**values: object) -> SamplingParams:
    return SamplingParams(**{"max_tokens": 64, "ignore_eos": True, **values})  # type: ignore[arg-type]  # values of one Any dict


def generate(
    driver: Driver, *given: tuple[SamplingParams, int], num_tokens: int = 12, chunk: int = 99
) -> list[Running]:
    sequences = [driver.add(PROMPT, sampling, seed) for sampling, seed in given]
    driver.generate(sequences, num_tokens, chunk)
    return sequences


def expected_logprobs(model: transformers.PreTrainedModel, tokens: list[int]) -> torch.Tensor:
    """[len(tokens) - 1, V]: of what follows each token."""
    with torch.inference_mode():
        return model(torch.tensor([tokens])).logits[0, :-1].double().log_softmax(-1)


def test_info(runner: ModelRunner) -> None:
    info = runner.info()
    assert (info.architecture, info.device, info.dtype) == ("Qwen3ForCausalLM", "cpu", "float32")
    assert (info.vocab_size, info.max_model_len, info.block_size) == (199, 128, 4)
    assert info.num_blocks == runner.num_blocks > 0
    assert info.kernels["attention_decode"] == "reference"


RANDOM = {
    "plain": params(),
    "cold": params(temperature=0.4),
    "top-k": params(top_k=20),
    "top-p": params(top_p=0.8, temperature=1.5),
    "min-p": params(min_p=0.1, temperature=2.0),
    "penalties": params(repetition_penalty=1.4, presence_penalty=0.5, frequency_penalty=0.3),
}


@pytest.mark.parametrize("name", RANDOM)
def test_a_seed_gives_the_same_tokens_in_any_company(name: str, runner: ModelRunner) -> None:
    sampling = RANDOM[name]
    (alone,) = generate(Driver(runner), (sampling, 123))
    others = [(GREEDY, 0), (params(top_k=3), 5), (params(temperature=1.7), 123), (params(top_p=0.5), 9)]
    crowd = generate(Driver(runner, shuffle_seed=8), *others[:2], (sampling, 123), *others[2:], chunk=3)
    assert crowd[2].output == alone.output
    (again,) = generate(Driver(runner), (sampling, 124))
    assert again.output != alone.output


def test_a_preemption_changes_nothing(runner: ModelRunner) -> None:
    for sampling in (*RANDOM.values(), params(temperature=0.0, min_tokens=9, repetition_penalty=1.5)):
        (alone,) = generate(Driver(runner), (sampling, 7))
        driver = Driver(runner)
        sequence = driver.add(PROMPT, sampling, 7)
        driver.generate([sequence], 6)
        driver.preempt(sequence)
        driver.generate([sequence], 12, chunk=5)
        assert sequence.output == alone.output


def test_a_negative_seed_is_a_seed(runner: ModelRunner) -> None:
    low, high = generate(Driver(runner), (params(), -(2**63)), (params(), 2**63 - 1))
    assert low.output != high.output


@pytest.mark.parametrize(
    "sampling", [params(temperature=0.0, logprobs=3), params(logprobs=0, top_k=5), params(logprobs=2)]
)
def test_logprobs_are_those_of_the_raw_logits(
    sampling: SamplingParams, runner: ModelRunner, model: transformers.PreTrainedModel
) -> None:
    sequences = generate(Driver(runner), (GREEDY, 0), (sampling, 3), (params(logprobs=5), 4))
    assert sequences[0].logprobs == []
    found = sequences[1]
    wanted = expected_logprobs(model, found.tokens)[len(PROMPT) - 1 :]
    assert [entry.token_id for entry in found.logprobs] == found.output
    for row, entry in enumerate(found.logprobs):
        assert entry.logprob == pytest.approx(wanted[row, entry.token_id].item(), abs=1e-4)
        assert entry.rank == 1 + int((wanted[row] > wanted[row, entry.token_id]).sum())
        top = wanted[row].topk(sampling.logprobs or 0)
        assert entry.top_ids == top.indices.tolist()
        assert entry.top_logprobs == pytest.approx(top.values.tolist(), abs=1e-4)


@pytest.mark.parametrize("chunk", [99, 3])
def test_prompt_logprobs_do_not_depend_on_chunks(
    chunk: int, runner: ModelRunner, model: transformers.PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atom.model_engine.model_runner._PROMPT_SLICE", 4)
    sequences = generate(
        Driver(runner), (params(prompt_logprobs=2, logprobs=1), 3), (GREEDY, 0), num_tokens=3, chunk=chunk
    )
    found, wanted = sequences[0].prompt_logprobs, expected_logprobs(model, sequences[0].tokens)
    assert sequences[1].prompt_logprobs == []
    assert [entry.token_id for entry in found] == PROMPT[1:]
    for row, entry in enumerate(found):
        assert entry.logprob == pytest.approx(wanted[row, entry.token_id].item(), abs=1e-4)
        assert entry.top_ids == wanted[row].topk(2).indices.tolist()


def test_a_prompt_can_be_scored_without_a_new_token(runner: ModelRunner) -> None:
    driver = Driver(runner)
    sequence = driver.add(PROMPT, params(prompt_logprobs=0, max_tokens=1), 0)
    sequence.num_prompt = len(PROMPT)
    driver.step([sequence], chunk=len(PROMPT) - 1)
    assert len(sequence.prompt_logprobs) == len(PROMPT) - 1
    assert sequence.output == []


def test_bias_decides(runner: ModelRunner) -> None:
    forced, barred, plain = generate(
        Driver(runner),
        (params(temperature=0.0, logit_bias={33: 100.0, 10_000: 5.0}), 0),
        (params(temperature=0.0, logit_bias=dict.fromkeys(range(1, 199), -100.0)), 0),
        (GREEDY, 0),
    )
    assert forced.output == [33] * 12
    assert barred.output == [0] * 12
    assert plain.output == generate(Driver(runner), (GREEDY, 0))[0].output


def test_min_tokens_keeps_stops_away(runner: ModelRunner) -> None:
    bias = {0: 90.0, 9: 100.0}
    sampling = SamplingParams(temperature=0.0, max_tokens=64, min_tokens=5, logit_bias=bias, stop_token_ids=(9,))
    (sequence,) = generate(Driver(runner), (sampling, 0), num_tokens=7)
    assert {0, 9}.isdisjoint(sequence.output[:5])
    assert sequence.output[5:] == [9, 9]
    unbarred = SamplingParams(temperature=0.0, max_tokens=64, min_tokens=5, logit_bias=bias, ignore_eos=True)
    assert generate(Driver(runner), (unbarred, 0), num_tokens=3)[0].output == [9] * 3


def test_a_repetition_penalty_ends_a_loop(runner: ModelRunner) -> None:
    bias = dict.fromkeys((50, 60, 70), 20.0)
    looping, varied = generate(
        Driver(runner),
        (params(temperature=0.0, logit_bias=bias), 0),
        (params(temperature=0.0, logit_bias=bias, presence_penalty=2.0, frequency_penalty=2.0), 0),
        num_tokens=30,
    )
    assert max(map(varied.output.count, varied.output)) < max(map(looping.output.count, looping.output))


def test_a_slot_forgets_its_last_sequence(runner: ModelRunner) -> None:
    """Sixteen slots, used three times over with other parameters each time."""
    driver = Driver(runner)
    kinds = [(GREEDY, 0), (RANDOM["penalties"], 5), (params(logit_bias={7: 50.0}, temperature=0.0), 0)]
    wanted = [generate(Driver(runner), kind)[0].output for kind in kinds]
    for turn in range(3):
        for slot in range(16):
            driver._slots = [slot]
            which = (turn + slot) % 3
            (sequence,) = generate(driver, kinds[which], num_tokens=3)
            assert sequence.output == wanted[which][:3]
            driver._free.extend(sequence.blocks)


def test_dtypes_and_devices(model: transformers.PreTrainedModel, tmp_path: Path) -> None:
    low = make_runner(save_model(model, tmp_path), dtype="bfloat16", max_model_len=128)
    (sequence,) = generate(Driver(low), (params(temperature=0.0, logprobs=1), 0))
    wanted = expected_logprobs(model, sequence.tokens)[len(PROMPT) - 1 :]
    found = torch.tensor([entry.logprob for entry in sequence.logprobs]).double()
    assert (found - wanted.gather(1, torch.tensor(sequence.output)[:, None]).squeeze(1)).abs().max() < 0.3
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert platform_of(torch.device("cpu")) == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no GPU"):
            resolve_device("cuda")
