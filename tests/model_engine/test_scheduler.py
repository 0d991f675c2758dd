"""What the scheduler puts into a step, seen from the batches that the uniform executor is given."""

from __future__ import annotations

import pytest

from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.scheduler_limits import SchedulerLimits
from tests.fakes.clock import ManualClock
from tests.fakes.engine_driver import EngineDriver
from tests.fakes.uniform_executor import UniformConfig, oracle


def driver_of(clock: ManualClock | None = None, **settings: object) -> EngineDriver:
    return EngineDriver(UniformConfig(**settings), clock)  # type: ignore[arg-type]  # values of one Any dict


def rows(batch: ScheduledBatch) -> list[tuple[int, int]]:
    """(query_len, context_len) of each row."""
    return list(zip(batch.query_lens.tolist(), batch.context_lens.tolist(), strict=True))


def test_a_long_prompt_is_cut_into_chunks_and_samples_at_its_end_only() -> None:
    driver = driver_of(max_num_batched_tokens=7)
    driver.add("a", range(20), max_tokens=2)
    driver.run()
    assert [rows(batch) for batch in driver.batches] == [[(7, 0)], [(7, 7)], [(6, 14)], [(1, 20)]]
    assert [batch.samples.tolist() for batch in driver.batches] == [[False], [False], [True], [True]]
    assert driver.answers["a"].num_deltas == 2


def test_decodes_come_first_and_prefills_take_what_is_left() -> None:
    driver = driver_of(max_num_batched_tokens=8)
    driver.add("a", range(3), max_tokens=5)
    driver.step()
    driver.add("b", range(10, 22), max_tokens=1)
    driver.run()
    assert rows(driver.batches[1]) == [(1, 3), (7, 0)]
    assert driver.batches[1].num_decodes == 1
    assert rows(driver.batches[2]) == [(1, 4), (5, 7)]


def test_more_decodes_than_the_budget_take_turns_by_arrival() -> None:
    driver = driver_of(max_num_batched_tokens=2)
    for name in "abc":
        driver.add(name, [ord(name) % 97], max_tokens=4)
    answers = driver.run()
    assert all(batch.num_tokens <= 2 for batch in driver.batches)
    assert [len(answers[name].token_ids) for name in "abc"] == [4, 4, 4]


@pytest.mark.parametrize("max_in_flight", [1, 2])
def test_no_step_is_spent_on_a_token_beyond_max_tokens(max_in_flight: int) -> None:
    driver = driver_of(max_in_flight=max_in_flight)
    driver.add("a", range(5), max_tokens=6)
    driver.run()
    assert len(driver.batches) == 6


@pytest.mark.parametrize("max_in_flight", [1, 2])
def test_no_step_is_spent_beyond_the_context(max_in_flight: int) -> None:
    driver = driver_of(max_in_flight=max_in_flight, max_model_len=8)
    driver.add("a", range(5), max_tokens=100)
    answer = driver.run()["a"]
    assert (len(answer.token_ids), answer.finish_reason) == (3, "length")
    assert len(driver.batches) == 3


def test_max_tokens_0_only_computes_the_prompt() -> None:
    driver = driver_of(max_num_batched_tokens=4)
    driver.add("a", range(6), max_tokens=0, prompt_logprobs=0)
    answer = driver.run()["a"]
    assert (answer.token_ids, answer.finish_reason) == ([], "length")
    assert [entry.token_id for entry in (answer.prompt_logprobs or [])[1:] if entry] == [1, 2, 3, 4, 5]
    assert not any(batch.samples.any() for batch in driver.batches)


def test_admissions_by_priority_then_arrival() -> None:
    driver = driver_of(max_num_seqs=1)
    for name, priority in [("a", 1), ("b", 0), ("c", 1), ("d", 0)]:
        driver.add(name, [ord(name) % 97], priority, max_tokens=2)
    ended = []
    while driver.core.has_work:
        ended += [delta.request_id for delta in driver.step() if delta.finish_reason]
    assert ended == ["b", "d", "a", "c"]


def test_the_newest_running_sequence_is_preempted_and_returns_before_newer_ones() -> None:
    driver = driver_of(num_blocks=8, block_size=2, max_num_seqs=2, enable_prefix_caching=False)
    for name, prompt in [("a", [1, 2]), ("b", [3, 4]), ("c", [5, 6])]:
        driver.add(name, prompt, max_tokens=9)
    ended = []
    while driver.core.has_work:
        ended += [delta.request_id for delta in driver.step() if delta.finish_reason]
        driver.check_blocks()
    assert driver.core.stats().preemptions > 0
    assert ended == ["a", "b", "c"]
    again = [admission for batch in driver.batches for admission in batch.admissions if len(admission.token_ids) > 2]
    assert [admission.token_ids[:2] for admission in again] == [[3, 4]]
    assert again[0].num_prompt_tokens == 2


def test_a_preempted_sequence_keeps_its_seed() -> None:
    driver = driver_of(num_blocks=8, block_size=2, max_num_seqs=2)
    driver.add("a", [1, 2], max_tokens=9, seed=5)
    driver.add("b", [3, 4], max_tokens=9)
    driver.run()
    seeds: dict[int, set[int]] = {}
    for batch in driver.batches:
        for admission in batch.admissions:
            seeds.setdefault(admission.token_ids[0], set()).add(admission.seed)
    assert seeds[1] == {5}
    assert len(seeds[3]) == 1
    assert driver.core.stats().preemptions > 0


def test_requests_that_can_never_run_are_refused_at_once() -> None:
    driver = driver_of(num_blocks=5, block_size=4, max_model_len=30, max_num_batched_tokens=8)
    driver.add("long", range(31), max_tokens=1)
    driver.add("full", range(30), max_tokens=1)
    driver.add("pool", range(25), max_tokens=1)
    driver.add("none", [], max_tokens=1)
    driver.add("token", [3, 97], max_tokens=1)
    driver.add("bias", [3], max_tokens=1, logit_bias={-1 + 98: 1.0})
    driver.add("good", range(3), max_tokens=1)
    answers = driver.run()
    reasons = {name: answer.error for name, answer in answers.items() if answer.finish_reason == "error"}
    assert reasons == {
        "long": "the prompt has 31 tokens, the model's context holds 30 (max_model_len)",
        "full": "the prompt has 30 tokens, the model's context holds 30 (max_model_len) and needs room for a new token",
        "pool": "the prompt has 25 tokens, the KV cache holds 20 (5 blocks of 4)",
        "none": "the prompt is empty",
        "token": "token id 97 of the prompt is outside the vocabulary of 97",
        "bias": "token id 97 of logit_bias is outside the vocabulary of 97",
    }
    assert answers["good"].token_ids == oracle(range(3), 1, 97)


def test_a_sequence_that_outgrows_the_pool_ends_with_length() -> None:
    driver = driver_of(num_blocks=5, block_size=4, max_model_len=200)
    driver.add("a", range(3), max_tokens=100)
    answer = driver.run()["a"]
    assert (len(answer.token_ids), answer.finish_reason) == (17, "length")
    assert driver.core.stats().preemptions == 0


def test_an_id_in_use_is_refused() -> None:
    driver = driver_of()
    driver.add("a", [1])
    with pytest.raises(ValueError, match="'a' is already in use"):
        driver.add("a", [1])
    driver.run()
    driver.answers.clear()
    driver.add("a", [1], max_tokens=1)
    assert driver.run()["a"].token_ids == oracle([1], 1, 97)


def test_the_delay_factor_holds_new_prompts_back() -> None:
    clock = ManualClock()
    driver = driver_of(clock, scheduler_delay_factor=2.0)
    driver.add("a", [1], max_tokens=50)
    driver.step()
    clock.advance(1.0)
    driver.step()  # the prefill took a second
    driver.add("b", [2], max_tokens=1)
    driver.step()
    assert driver.core.stats().num_waiting == 1
    clock.advance(2.0)
    driver.step()
    assert driver.core.stats().num_waiting == 1
    clock.advance(0.1)
    driver.step()
    assert driver.core.stats().num_waiting == 0


def test_the_delay_factor_never_holds_an_idle_engine() -> None:
    driver = driver_of(ManualClock(), scheduler_delay_factor=1000.0)
    driver.add("a", [1], max_tokens=1)
    assert driver.run()["a"].finish_reason == "length"


def test_the_first_delta_says_how_long_the_request_queued() -> None:
    clock = ManualClock(5.0)
    driver = driver_of(clock, max_num_seqs=1, num_blocks=4, block_size=4, max_in_flight=1)
    driver.add("a", [1], max_tokens=2)
    driver.add("b", [2], max_tokens=2)
    times = []
    while driver.core.has_work:
        clock.advance(0.25)
        times += [(delta.request_id, delta.queue_time) for delta in driver.step()]
    assert times == [("a", 0.25), ("a", None), ("b", 0.75), ("b", None)]


def test_stats_count_each_token_once() -> None:
    driver = driver_of(num_blocks=10, block_size=2, max_num_seqs=2)
    for name in "abc":
        driver.add(name, [1, 2, 3, ord(name) % 97], max_tokens=9)
    driver.run()
    stats = driver.core.stats()
    assert stats.preemptions > 0
    assert (stats.prompt_tokens, stats.generation_tokens) == (12, 27)
    assert (stats.requests_finished, stats.requests_aborted) == (3, 0)
    assert (stats.num_running, stats.num_waiting, stats.num_blocks_used) == (0, 0, 0)
    assert stats.steps == len(driver.batches)


def test_a_partial_prefill_shows_in_the_stats() -> None:
    driver = driver_of(max_num_batched_tokens=4)
    driver.add("a", range(10), max_tokens=1)
    driver.step()
    assert driver.core.stats().num_partial_prefills == 1
    assert driver.core.stats().num_blocks_used == 3


@pytest.mark.parametrize("name", ["max_num_seqs", "max_num_batched_tokens", "max_model_len", "decode_len"])
def test_limits_are_at_least_one(name: str) -> None:
    limits = {"max_num_seqs": 1, "max_num_batched_tokens": 1, "max_model_len": 1, "decode_len": 1} | {name: 0}
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        SchedulerLimits(**limits)


def test_the_budget_holds_one_decode_with_its_drafts() -> None:
    with pytest.raises(ValueError, match=r"max_num_batched_tokens \(3\) must hold a decode of 4 tokens"):
        SchedulerLimits(1, 3, 10, decode_len=4)
