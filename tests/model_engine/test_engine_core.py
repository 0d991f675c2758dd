"""The loop: overlapped or plain, results a step late, stops, aborts, caches; each against the sequence alone."""

from __future__ import annotations

from typing import Any

import pytest

from atom.model_engine.engine_core import EngineCore, describe
from tests.fakes.engine_driver import EngineDriver
from tests.fakes.uniform_executor import UniformConfig, UniformExecutor, logprobs_of, oracle

EXECUTOR = "tests.fakes.uniform_executor:UniformExecutor"


def driver_of(**settings: Any) -> EngineDriver:
    return EngineDriver(UniformConfig(**settings))


def test_plain_takes_each_result_before_the_next_step_and_overlapped_one_step_late() -> None:
    for max_in_flight, first_step_with_a_token in [(1, 0), (2, 1)]:
        driver = driver_of(max_in_flight=max_in_flight)
        driver.add("a", [1, 2], max_tokens=5)
        steps = [bool(driver.step()) for _ in range(7)]
        assert steps.index(True) == first_step_with_a_token
        assert driver.answers["a"].token_ids == oracle([1, 2], 5, 97)
        assert not driver.core.has_work


@pytest.mark.parametrize("waits", [False, True])
def test_a_request_that_arrives_beside_prompts_is_in_the_next_step_where_the_executor_waits(waits: bool) -> None:
    driver = driver_of(waits_for_prompts=waits)
    driver.add("a", [1, 2], max_tokens=5)
    driver.step()
    assert bool(driver.step()) is True
    driver.add("b", [3, 4], max_tokens=5)
    driver.run()
    assert [batch.num_rows for batch in driver.batches[:3]] == ([1, 2, 2] if waits else [1, 1, 2])
    assert driver.answers["a"].token_ids == oracle([1, 2], 5, 97)
    assert driver.answers["b"].token_ids == oracle([3, 4], 5, 97)


def test_a_stop_is_learnt_a_step_late_and_the_extra_token_is_dropped() -> None:
    prompt = [1, 2, 3]
    tokens = oracle(prompt, 9, 97)
    eos = tokens[4]
    driver = driver_of(eos_token_ids=(eos,))
    driver.add("a", prompt, max_tokens=50)
    answer = driver.run()["a"]
    assert (answer.token_ids, answer.finish_reason, answer.stop_token) == (tokens[: tokens.index(eos)], "stop", eos)
    assert len(driver.batches) == len(answer.token_ids) + 2
    assert driver.scheduler.blocks.num_used == 0


def test_the_freed_slot_and_blocks_of_a_late_stop_serve_the_next_sequence() -> None:
    prompt = [1, 2, 3]
    eos = oracle(prompt, 5, 97)[4]
    driver = driver_of(eos_token_ids=(eos,), max_num_seqs=1, num_blocks=6, block_size=4)
    prompts = {"0": prompt, "1": [2, 3, 1], "2": [2, 3, 2]}
    for name, tokens in prompts.items():
        driver.add(name, tokens, max_tokens=9)
    answers = driver.run()
    assert answers["0"].finish_reason == "stop"
    for name, tokens in prompts.items():
        assert answers[name].token_ids == until(oracle(tokens, 9, 97), eos)


def until(tokens: list[int], stop: int) -> list[int]:
    return tokens[: tokens.index(stop)] if stop in tokens else tokens


@pytest.mark.parametrize("max_in_flight", [1, 2])
def test_an_abort_frees_the_blocks_at_once_and_answers_with_the_next_step(max_in_flight: int) -> None:
    driver = driver_of(max_in_flight=max_in_flight)
    before = driver.core.stats().num_blocks_used
    driver.add("a", range(9), max_tokens=50)
    driver.add("b", [5], max_tokens=5)
    for _ in range(3):
        driver.step()
    assert driver.core.stats().num_blocks_used > before
    driver.core.abort(["a", "unknown", "a"])
    driver.core.abort(["b"])
    stats = driver.core.stats()
    assert (stats.num_blocks_used, stats.num_running, stats.requests_aborted) == (before, 0, 2)
    driver.step()
    assert driver.answers["a"].finish_reason == "abort"
    driver.run()
    assert driver.answers["a"].token_ids == oracle(range(9), len(driver.answers["a"].token_ids), 97)


def test_an_abort_reaches_one_that_waits() -> None:
    driver = driver_of(max_num_seqs=1)
    driver.add("a", [1], max_tokens=3)
    driver.add("b", [2], max_tokens=3)
    driver.step()
    driver.core.abort(["b"])
    assert driver.core.stats().num_waiting == 0
    answers = driver.run()
    assert (answers["b"].token_ids, answers["b"].finish_reason) == ([], "abort")
    assert answers["a"].finish_reason == "length"


def test_logprobs_have_an_entry_for_the_stop_token_too() -> None:
    prompt = [4, 5]
    tokens = oracle(prompt, 4, 97)
    driver = driver_of(eos_token_ids=(tokens[3],))
    driver.add("a", prompt, max_tokens=9, logprobs=2)
    answer = driver.run()["a"]
    kept = until(tokens, tokens[3])
    assert answer.token_ids == kept
    assert answer.logprobs == [
        logprobs_of([*prompt, *tokens[:index]], tokens[index], 2, 97) for index in range(len(kept) + 1)
    ]


def test_prompt_logprobs_over_chunks_come_with_the_first_token() -> None:
    prompt = [*range(50)]
    whole, chunked = driver_of(max_num_batched_tokens=64), driver_of(max_num_batched_tokens=16)
    for driver in (whole, chunked):
        driver.add("a", prompt, max_tokens=2, prompt_logprobs=1, logprobs=1)
        driver.run()
    answer = chunked.answers["a"]
    assert answer == whole.answers["a"]
    assert answer.prompt_logprobs is not None
    assert len(answer.prompt_logprobs) + len(answer.logprobs) == 52
    assert answer.prompt_logprobs[0] is None
    assert answer.num_deltas == 2


@pytest.mark.parametrize("caching", [False, True])
def test_prompt_logprobs_are_not_wanted_again_after_a_preemption(caching: bool) -> None:
    """The second pass begins behind the prompt, in the prefix cache, or has a chunk that does."""
    asked = {"max_tokens": 20, "prompt_logprobs": 1}
    alone = driver_of()
    alone.add("b", [*range(8)], **asked)
    driver = driver_of(num_blocks=9, block_size=4, max_num_batched_tokens=5, enable_prefix_caching=caching)
    driver.add("a", [1, 2, 3, 4], max_tokens=24)
    driver.add("b", [*range(8)], **asked)
    answer, wanted = driver.run()["b"], alone.run()["b"]
    assert driver.core.stats().preemptions > 0
    assert (answer.token_ids, answer.prompt_logprobs) == (wanted.token_ids, wanted.prompt_logprobs)


def test_prefix_cache_hits_change_nothing_but_the_work() -> None:
    """A prompt of 5 blocks and 3 tokens: cold, repeated, 4 blocks shared, aligned, and after eviction."""
    prompt = [(7 * index) % 97 for index in range(23)]
    driver = driver_of(num_blocks=24, block_size=4)
    runs = {
        "cold": (prompt, 0),
        "repeated": (prompt, 20),
        "shared": ([*prompt[:16], 90, 91, 92, 93, 94], 16),
        "aligned": (prompt[:20], 16),
        "evicting": ([96 - index for index in range(84)], 0),
        "evicted": (prompt, 0),
    }
    for name, (tokens, num_cached) in runs.items():
        driver.add(name, tokens, max_tokens=10)
        answer = driver.run()[name]
        assert answer.token_ids == oracle(tokens, 10, 97), name
        assert answer.num_cached_tokens == num_cached, name
    assert driver.core.stats().cached_prompt_tokens == 52


def test_generated_blocks_are_found_by_the_next_turn() -> None:
    driver = driver_of(block_size=4)
    driver.add("a", [1, 2, 3], max_tokens=10)
    turn = [1, 2, 3, *driver.run()["a"].token_ids, 50, 51]
    driver.add("b", turn, max_tokens=2)
    assert driver.run()["b"].num_cached_tokens == 12
    assert driver.answers["b"].token_ids == oracle(turn, 2, 97)


def test_a_hash_is_published_only_after_its_step() -> None:
    driver = driver_of(block_size=4, max_num_seqs=2)
    driver.add("a", range(9), max_tokens=1)
    driver.add("b", range(9), max_tokens=1)
    answers = driver.run()
    assert (answers["a"].num_cached_tokens, answers["b"].num_cached_tokens) == (0, 0)
    assert answers["a"].token_ids == answers["b"].token_ids


def test_preemption_is_invisible() -> None:
    """Eight requests where four fit: same tokens and log probabilities, the prompt counted once."""
    driver = driver_of(num_blocks=40, block_size=4, max_num_seqs=8, max_num_batched_tokens=64)
    prompts = {str(index): [index, *range(19)] for index in range(8)}
    for name, prompt in prompts.items():
        driver.add(name, prompt, max_tokens=20, logprobs=1)
    answers = driver.run()
    assert driver.core.stats().preemptions > 0
    assert driver.core.stats().prompt_tokens == 8 * 20
    for name, prompt in prompts.items():
        tokens = oracle(prompt, 20, 97)
        assert answers[name].token_ids == tokens
        assert [entry.token_id for entry in answers[name].logprobs] == tokens
        assert answers[name].num_cached_tokens == 0


def test_drafts_that_are_right_save_steps_and_wrong_ones_change_nothing() -> None:
    config: dict[str, Any] = {"draft_len": 3, "max_in_flight": 1}
    driver = driver_of(**config)
    driver.add("a", [1, 2, 3], max_tokens=40)
    answer = driver.run()["a"]
    stats = driver.core.stats()
    assert answer.token_ids == oracle([1, 2, 3], 40, 97)
    assert len(driver.batches) < 40
    assert 0 < stats.accepted_tokens < stats.draft_tokens
    decodes = [batch for batch in driver.batches if batch.num_decodes]
    assert all(int(batch.query_lens[0]) == 4 for batch in decodes[:-2])
    assert stats.draft_tokens == sum(int(batch.query_lens[0]) - 1 for batch in decodes)


def test_create_starts_the_executor_and_sizes_the_scheduler() -> None:
    core = EngineCore.create(UniformConfig(num_blocks=3, block_size=4), EXECUTOR)
    assert isinstance(core.executor, UniformExecutor)
    assert not core.executor.owns_process
    assert core.stats().num_blocks_total == 3
    core.shutdown()
    assert core.executor.is_shut_down


def test_create_releases_the_executor_when_it_can_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    monkeypatch.setattr(UniformExecutor, "shutdown", lambda self: ended.append(self))
    with pytest.raises(ValueError, match="no room"):
        EngineCore.create(UniformConfig(fail_at_start="no room"), EXECUTOR)
    assert len(ended) == 1


def test_a_failed_step_reaches_the_caller() -> None:
    driver = driver_of(fail_at_step=2)
    driver.add("a", [1], max_tokens=9)
    with pytest.raises(RuntimeError, match="step 2 failed"):
        driver.run()


def test_a_result_of_another_step_is_an_error() -> None:
    driver = driver_of(max_in_flight=1)
    driver.add("a", [1], max_tokens=9)
    driver.step()
    driver.scheduler.schedule()
    stale = driver.executor._run(driver.batches[0])
    with pytest.raises(RuntimeError, match="returned step 0 where step 1 was due"):
        driver.scheduler.apply(stale)


def test_errors_are_described_in_one_line() -> None:
    assert describe(ValueError("too\n  small")) == "too small"
    assert describe(RuntimeError("bad")) == "RuntimeError: bad"
    assert describe(KeyError()) == "KeyError"
