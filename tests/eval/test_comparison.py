"""What `make eval` calls different."""

from __future__ import annotations

from tools.eval.comparison import Outcome, differences


def outcome(model: str, score: float, *answers: str, task: str = "atom_answers") -> Outcome:
    return Outcome(task, model, {"exact_match": score}, {n: [[answer]] for n, answer in enumerate(answers)})


def test_equal_scores_and_answers_leave_nothing_to_say() -> None:
    assert differences([outcome("a", 0.5, "x", "y"), outcome("b", 0.5, "x", "y")]) == []


def test_another_score_is_named_with_both_models() -> None:
    [finding] = differences([outcome("a", 0.5, "x"), outcome("b", 0.505, "x")])
    assert "0.5000 by a" in finding and "0.5050 by b" in finding


def test_equal_scores_of_other_answers_are_found() -> None:
    [finding] = differences([outcome("a", 0.5, "x", "y"), outcome("b", 0.5, "x", "z")])
    assert "[1]" in finding


def test_chat_is_compared_with_the_task_that_asks_the_same() -> None:
    assert differences([outcome("a", 0.5, "x"), outcome("b", 0.4, "x", task="atom_answers_chat")])
    assert not differences([outcome("a", 0.5, "x"), outcome("b", 0.4, "y", task="gsm8k")])


def test_choices_may_differ_by_a_tenth_of_a_percent() -> None:
    first = outcome("a", 0.5, "x", task="atom_choices")
    assert not differences([first, outcome("b", 0.5009, "y", task="atom_choices")])
    assert differences([first, outcome("b", 0.5011, "x", task="atom_choices")])
