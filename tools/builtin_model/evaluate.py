"""Scores atom-tiny: greedy answers to held-out dialogues and to the suite of unseen tools.

Owns: which cases are run, what counts as right, the table. Does not know: training.
`python -m tools.builtin_model.evaluate MODEL_DIR [--cases 100] [--thinking both] [--out scores.json]`
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from tools.builtin_model.dialogue import PLAIN_SKILLS, TOOL_SKILLS, skill_dialogue
from tools.builtin_model.exchanges import Dialogue
from tools.builtin_model.greedy import generate
from tools.builtin_model.model import TinyModel, load_model
from tools.builtin_model.render import message_calls, render_text
from tools.builtin_model.suite import suite_dialogues
from tools.builtin_model.vocabulary import END_IDS, FastEncoder
from tools.builtin_model.wire import FORMAT_NAMES
from tools.builtin_model.wire_reader import Properties, read_answer
from tools.builtin_model.words import Words

MAX_ANSWER_TOKENS = 420
MAX_BATCH_TOKENS = 700_000
_CLOSED_SKILLS = ("greet", "who", "thanks")


@dataclass(slots=True)
class Case:
    """One dialogue to answer: its prompt, and what the right answer is."""

    dialogue: Dialogue
    prompt: list[int]
    expected: str


@dataclass(slots=True)
class Score:
    """Counts over the cases of one (format, thinking, skill)."""

    cases: int = 0
    exact: int = 0
    right_tools: int = 0
    valid: int = 0
    ended: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)


def make_dialogues(
    num_cases: int, thinking: bool, formats: tuple[str, ...], seed: str = "evaluation", with_suite: bool = True
) -> list[Dialogue]:
    """The same held-out dialogues for every format; `with_suite` adds the suite of unseen tools."""
    dialogues = []
    for format_name in formats:
        for skill in (*TOOL_SKILLS, *PLAIN_SKILLS):
            words = Words(random.Random(f"{seed} {skill} {thinking}"), held_out=True)
            dialogues += [
                skill_dialogue(words, skill, format_name, thinking)
                for _ in range(min(num_cases, 50) if skill in _CLOSED_SKILLS else num_cases)
            ]
        for num_tools in (1, 3) if with_suite else ():
            dialogues += suite_dialogues(format_name, thinking, num_tools)
    return dialogues


def make_case(dialogue: Dialogue, encoder: FastEncoder) -> Case:
    """The prompt up to the last answer, and that answer's text."""
    prompt = render_text(
        dialogue.messages[:-1], dialogue.tools, dialogue.format_name, is_prompt=True, thinking=dialogue.thinking
    )
    whole = render_text(dialogue.messages, dialogue.tools, dialogue.format_name)
    return Case(dialogue, encoder.encode(prompt), whole[len(prompt) :].rstrip("\n"))


def is_exact(case: Case, answer: str) -> tuple[bool, bool, bool, bool]:
    """(exact, right tools, valid markup, ended); exact: equal calls, or the same content, valid and ended."""
    dialogue = case.dialogue
    properties: Properties = {
        tool["function"]["name"]: tool["function"].get("parameters", {}).get("properties", {})
        for tool in dialogue.tools
    }
    earlier = sum(len(message_calls(message)) for message in dialogue.messages[:-1])
    reading = read_answer(dialogue.format_name, answer, properties, earlier)
    wanted = message_calls(dialogue.messages[-1])
    right_tools = [call.name for call in reading.calls] == [call.name for call in wanted]
    same_content = bool(wanted) or reading.content == dialogue.messages[-1]["content"]
    same_arguments = right_tools and all(
        _equal(got.arguments, want.arguments) for got, want in zip(reading.calls, wanted, strict=True)
    )
    return (
        same_content and same_arguments and reading.is_valid and reading.has_ended,
        right_tools,
        reading.is_valid,
        reading.has_ended,
    )


def _equal(got: Any, want: Any) -> bool:
    """JSON equality that tells true from 1."""
    return json.dumps(got, sort_keys=True) == json.dumps(want, sort_keys=True)


def run(
    model: TinyModel,
    tokenizer: Tokenizer,
    dialogues: list[Dialogue],
    batch_size: int,
    max_answer_tokens: int = MAX_ANSWER_TOKENS,
) -> dict[tuple[str, bool, str], Score]:
    """Answers and scores all dialogues, longest prompts together."""
    encoder = FastEncoder(tokenizer)
    cases = [make_case(dialogue, encoder) for dialogue in dialogues]
    cases.sort(key=lambda case: (len(case.expected) // 200, len(case.prompt)))
    scores: dict[tuple[str, bool, str], Score] = {}
    for batch in _batches(cases, batch_size):
        limit = min(max_answer_tokens, 48 + max(len(case.expected) for case in batch) * 3 // 4)
        for case, ids in zip(batch, generate(model, [case.prompt for case in batch], END_IDS, limit), strict=True):
            answer = tokenizer.decode(ids, skip_special_tokens=False)
            key = (case.dialogue.format_name, case.dialogue.thinking, case.dialogue.skill)
            _record(scores.setdefault(key, Score()), case, answer)
    return scores


def _batches(cases: list[Case], batch_size: int) -> Iterator[list[Case]]:
    """At most `batch_size` cases and MAX_BATCH_TOKENS padded prompt tokens together."""
    batch: list[Case] = []
    for case in cases:
        longest = max(len(case.prompt), *(len(other.prompt) for other in batch), 1)
        if batch and (len(batch) == batch_size or longest * (len(batch) + 1) > MAX_BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(case)
    yield batch


def _record(score: Score, case: Case, answer: str) -> None:
    exact, right_tools, valid, ended = is_exact(case, answer)
    score.cases += 1
    score.exact += exact
    score.right_tools += right_tools
    score.valid += valid
    score.ended += ended
    if not exact and len(score.failures) < 6:
        names = [tool["function"]["name"] for tool in case.dialogue.tools]
        last_user = next(
            message["content"] for message in reversed(case.dialogue.messages) if message["role"] == "user"
        )
        score.failures.append(
            {"tools": names, "request": last_user[:300], "wanted": case.expected[:500], "got": answer[:500]}
        )


def summarize(scores: dict[tuple[str, bool, str], Score]) -> dict[str, Any]:
    """Percentages: by skill and format, and the figures that the project sets bars for."""
    table: dict[str, dict[str, float]] = {}
    for (format_name, thinking, skill), score in sorted(scores.items()):
        table.setdefault(f"{'think' if thinking else 'plain'}: {skill}", {})[format_name] = round(
            100 * score.exact / score.cases, 1
        )
    totals: Counter[str] = Counter()
    for score in scores.values():
        totals.update({"cases": score.cases, "valid": score.valid, "ended": score.ended})
    bars: dict[str, float] = {
        "valid markup": round(100 * totals["valid"] / totals["cases"], 2),
        "turn ended": round(100 * totals["ended"] / totals["cases"], 2),
    }
    for mode in sorted({thinking for _, thinking, _ in scores}):
        label = "thinking on" if mode else "thinking off"
        groups = {
            "mean over skills and formats": [
                s for (_, t, skill), s in scores.items() if t == mode and not skill.startswith("unseen")
            ],
            "two-digit sums": [s for (_, t, skill), s in scores.items() if t == mode and skill == "sums"],
            "unseen, 1 tool": [s for (_, t, skill), s in scores.items() if t == mode and skill == "unseen, 1 tool"],
            "unseen, 3 tools": [s for (_, t, skill), s in scores.items() if t == mode and skill == "unseen, 3 tools"],
        }
        for name, members in groups.items():
            if members:
                bars[f"{name}, {label}"] = round(sum(100 * s.exact / s.cases for s in members) / len(members), 2)
    return {"bars": bars, "cases": totals["cases"], "exact by skill and format": table}


def print_table(summary: dict[str, Any]) -> None:
    """The summary on the terminal."""
    for name, value in summary["bars"].items():
        print(f"{name:<50} {value:6.2f}")
    print(f"{'':<34}" + "".join(f"{name:>9}" for name in FORMAT_NAMES))
    for row, cells in summary["exact by skill and format"].items():
        print(f"{row:<34}" + "".join(f"{cells.get(name, float('nan')):>9.1f}" for name in FORMAT_NAMES), flush=True)


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--thinking", choices=("off", "on", "both"), default="both")
    parser.add_argument("--formats", default=",".join(FORMAT_NAMES))
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--max-answer-tokens", type=int, default=MAX_ANSWER_TOKENS)
    parser.add_argument("--no-suite", action="store_true", help="leave out the suite of unseen tools")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(argv)
    started = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = load_model(args.model, torch.bfloat16 if device == "cuda" else torch.float32).to(device)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    scores: dict[tuple[str, bool, str], Score] = {}
    for thinking in {"off": (False,), "on": (True,), "both": (False, True)}[args.thinking]:
        dialogues = make_dialogues(args.cases, thinking, tuple(args.formats.split(",")), with_suite=not args.no_suite)
        scores |= run(model, tokenizer, dialogues, args.batch_size, args.max_answer_tokens)
        print(
            f"{len(dialogues)} cases with thinking {'on' if thinking else 'off'}, {time.time() - started:.0f} s",
            flush=True,
        )
        summary = summarize(scores)
        if args.out:
            failures = {
                " | ".join(map(str, key)): asdict(score)["failures"] for key, score in scores.items() if score.failures
            }
            args.out.write_text(
                json.dumps(summary | {"failures": failures}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
    print_table(summary)


if __name__ == "__main__":
    main()
