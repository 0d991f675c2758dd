"""The evaluation's data, from the shipped model's own generator: `python -m tools.eval.cases` writes data/*.jsonl.

Owns: which skills are asked for and how many times, the wrong choices, the word problems in gsm8k's columns.
Does not know: lm-eval, engines, scores. Everything is drawn from the tenth that training never sees, from fixed seeds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.builtin_model.plain import SKILLS
from tools.builtin_model.render import render_text
from tools.builtin_model.sums import sums
from tools.builtin_model.words import Words

DATA = Path(__file__).parent / "data"
FORMAT = "qwen"
"""The format that `atom-tiny` speaks when no other is named."""

_ANSWERS = {"sums": 80, "small sums": 20, "capital": 20, "count": 20, "listing": 20, "repeat": 20}
_NUM_BEYOND = 20
_NUM_CHOICES = 4
_NUM_CHOICE_CASES = 200
_NUM_PROBLEMS = {"train": 40, "test": 100}

Row = dict[str, object]


def answers() -> Iterator[Row]:
    """Requests with one right answer. `prompt` is `question` as the chat template writes it, without thinking.

    The last ones, sums of three digits, are beyond what the model has learned: it fails some, and an engine must fail
    the same ones.
    """
    for skill, amount in _ANSWERS.items():
        words = _words(f"answers {skill}")
        for _ in range(amount):
            question, _, answer = SKILLS[skill](words)
            yield _answer_row(skill, question, answer)
    words = _words("answers beyond")
    for _ in range(_NUM_BEYOND):
        a, b = words.number(100, 999), words.number(100, 999)
        question = words.phrase("sum").format(a=a, b=b, op="+", word="plus")
        yield _answer_row("beyond", question, f"{a} + {b} = {a + b}")


def _answer_row(skill: str, question: str, answer: str) -> Row:
    return {"skill": skill, "question": question, "prompt": chat_prompt(question), "answer": answer}


def choices() -> Iterator[Row]:
    """Sums with four results to choose from, every other one as a chat, the rest as plain text.

    The model never learned plain text. That half keeps the score away from 100%, so that log probabilities that are off
    show.
    """
    words = _words("choices")
    for index in range(_NUM_CHOICE_CASES):
        question, _, answer = sums(words, is_two_digit=True)
        term, _, result = answer.partition(" = ")
        results = _near(words, int(result))
        is_chat = index % 2 == 0
        yield {
            "kind": "chat" if is_chat else "plain",
            "context": chat_prompt(question) if is_chat else f"Q: {question}\nA:",
            "choices": [f"{term} = {each}" if is_chat else f" {each}" for each in results],
            "right": results.index(int(result)),
        }


def problems(split: str) -> Iterator[Row]:
    """Sums with their working, in the columns and the notation of gsm8k: a stand-in where that cannot be downloaded."""
    words = _words(f"problems {split}")
    for _ in range(_NUM_PROBLEMS[split]):
        question, working, answer = sums(words, is_two_digit=True)
        yield {"question": question, "answer": f"{working}\n#### {answer.rpartition(' ')[2]}"}


def chat_prompt(question: str) -> str:
    """The request as the first turn of a chat, up to where the answer starts."""
    return render_text([{"role": "user", "content": question}], [], FORMAT, is_prompt=True)


def _words(seed: str) -> Words:
    return Words(random.Random(f"evaluation {seed}"), held_out=True)


def _near(words: Words, result: int) -> list[int]:
    """The result among near ones, all different, in random order."""
    near = sorted({result + step for step in (-11, -10, -2, -1, 1, 2, 9, 10)})
    results = [*words.rng.sample(near, _NUM_CHOICES - 1), result]
    words.rng.shuffle(results)
    return results


FILES: dict[str, Callable[[], Iterator[Row]]] = {
    "answers.jsonl": answers,
    "choices.jsonl": choices,
    "problems_train.jsonl": lambda: problems("train"),
    "problems_test.jsonl": lambda: problems("test"),
}


def text(name: str) -> str:
    """What the file of that name in data/ holds."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in FILES[name]())


def main() -> None:
    """Write every file."""
    DATA.mkdir(exist_ok=True)
    for name in FILES:
        (DATA / name).write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
