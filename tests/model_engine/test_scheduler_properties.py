"""Whatever is asked of the engine and in whatever order: each request gets what it would get alone, nothing leaks."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atom.sampling_params import SamplingParams
from tests.fakes.engine_driver import Answer, EngineDriver, expected_answer
from tests.fakes.uniform_executor import UniformConfig

VOCAB = 11


@dataclass(frozen=True)
class Add:
    prompt: list[int]
    sampling: SamplingParams
    priority: int
    salt: str


@dataclass(frozen=True)
class Abort:
    index: int


@dataclass(frozen=True)
class Step:
    count: int


@st.composite
def configs(draw: st.DrawFn) -> UniformConfig:
    draft_len = draw(st.sampled_from([0, 0, 0, 1, 3]))
    return UniformConfig(
        num_blocks=draw(st.integers(5, 24)),
        block_size=draw(st.sampled_from([1, 2, 4])),
        vocab_size=VOCAB,
        eos_token_ids=draw(st.sampled_from([(), (3,), (3, 7)])),
        max_model_len=draw(st.sampled_from([14, 40, 200])),
        max_num_seqs=draw(st.integers(1, 6)),
        max_num_batched_tokens=draw(st.integers(1 + draft_len, 24)),
        enable_prefix_caching=draw(st.booleans()),
        max_in_flight=draw(st.sampled_from([1, 2, 3])),
        waits_for_prompts=draw(st.booleans()),
        draft_len=draft_len,
    )


@st.composite
def adds(draw: st.DrawFn) -> Add:
    """Prompts share beginnings, so that the prefix cache has something to find."""
    shared = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3][: draw(st.integers(0, 12))]
    tail = draw(st.lists(st.integers(0, VOCAB - 1), min_size=0 if shared else 1, max_size=8))
    max_tokens = draw(st.integers(0, 20))
    sampling = SamplingParams(
        max_tokens=max_tokens,
        min_tokens=draw(st.integers(0, max_tokens)),
        ignore_eos=draw(st.booleans()),
        stop_token_ids=draw(st.sampled_from([(), (), (5,)])),
        logprobs=draw(st.sampled_from([None, None, 0, 2])),
        prompt_logprobs=draw(st.sampled_from([None, None, None, 1])),
    )
    return Add(shared + tail, sampling, draw(st.integers(0, 1)), draw(st.sampled_from(["", "", "x"])))


operations = st.lists(
    st.one_of(adds(), adds(), st.builds(Step, st.integers(1, 8)), st.builds(Abort, st.integers(0, 15))),
    min_size=6,
    max_size=30,
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configs(), operations)
def test_every_request_gets_what_it_would_get_alone(config: UniformConfig, script: list[Add | Abort | Step]) -> None:
    driver = EngineDriver(config)
    added: dict[str, Add] = {}
    aborted: set[str] = set()
    for operation in script:
        if isinstance(operation, Add):
            request_id = str(len(added))
            added[request_id] = operation
            sampling = {name: getattr(operation.sampling, name) for name in operation.sampling.__struct_fields__}
            driver.add(request_id, operation.prompt, operation.priority, operation.salt, **sampling)
        elif isinstance(operation, Abort):
            driver.core.abort([str(operation.index)])
            aborted.add(str(operation.index))
            driver.check_blocks()
        else:
            for _ in range(operation.count):
                driver.step()
                driver.check_blocks()
    answers = driver.run()
    check_batches(driver)
    assert driver.scheduler.blocks.num_used == 0
    assert answers.keys() == added.keys()
    for request_id, request in added.items():
        check_answer(config, request, request_id in aborted, answers[request_id])


def check_batches(driver: EngineDriver) -> None:
    """Never over the budget, one row a slot, decodes first, and steps counted without a gap."""
    config = driver.config
    for index, batch in enumerate(driver.batches):
        assert batch.step == index
        assert 0 < batch.num_tokens <= config.max_num_batched_tokens
        assert len(set(batch.slots.tolist())) == batch.num_rows <= config.max_num_seqs
        assert (batch.query_lens[: batch.num_decodes] <= 1 + config.draft_len).all()
        assert (batch.query_lens > 0).all()
        assert batch.samples[: batch.num_decodes].all()
        assert len(batch.prefill_token_ids) == batch.query_lens[batch.num_decodes :].sum()


def check_answer(config: UniformConfig, request: Add, may_be_aborted: bool, answer: Answer) -> None:
    limit = min(config.max_model_len, config.num_blocks * config.block_size)
    if answer.finish_reason == "error":
        assert len(request.prompt) + min(request.sampling.max_tokens, 1) > limit
        return
    expected = expected_answer(config, request.prompt, request.sampling)
    if answer.finish_reason == "abort":
        assert may_be_aborted
        assert answer.token_ids == expected.token_ids[: len(answer.token_ids)]
        return
    assert answer.token_ids == expected.token_ids
    assert answer.logprobs == expected.logprobs
    assert answer.prompt_logprobs == expected.prompt_logprobs
    assert (answer.finish_reason, answer.stop_token) == (expected.finish_reason, expected.stop_token)
    assert answer.num_cached_tokens < len(request.prompt)
    if not config.enable_prefix_caching or request.sampling.prompt_logprobs is not None:
        assert answer.num_cached_tokens == 0
