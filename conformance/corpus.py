"""Recorded vectors: folders of JSONL files, one vector a line.

Owns the vectors' file format and what counts as a match: numbers by value, `__raw__` arguments byte for byte,
ambiguous vectors by `expect` or any `alt`, whitespace-policy vectors by the project's own policy. Knows nothing of
readers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.answer import Answer, Call

_RAW = "__raw__"


class CorpusError(ValueError):
    """A vector file that can't be read; the message names the file and the line."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call as a vector gives it: `arguments` is an object, or the exact text under `__raw__`."""

    name: str
    arguments: dict[str, Any]

    def matches(self, call: Call) -> bool:
        """Whether `call` is this call; numbers compare by value (1 is 1.0), booleans are no numbers."""
        if call.name != self.name:
            return False
        if set(self.arguments) == {_RAW}:
            return bool(call.arguments == self.arguments[_RAW])
        try:
            return same_json(json.loads(call.arguments), self.arguments)
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Expected:
    """One right answer."""

    content: str
    reasoning: str
    calls: tuple[ExpectedCall, ...]
    finish_reason: str

    def matches(self, answer: Answer) -> bool:
        """Whether `answer` is this one: text byte for byte, calls by value and in order."""
        return (
            answer.content == self.content
            and answer.reasoning == self.reasoning
            and answer.finish_reason == self.finish_reason
            and len(answer.calls) == len(self.calls)
            and all(expected.matches(call) for expected, call in zip(self.calls, answer.calls, strict=True))
        )


@dataclass(frozen=True, slots=True)
class Vector:
    """One recorded output of a model, and the answers that are right for it (one, unless it is ambiguous)."""

    id: str
    format: str
    variant: str | None
    tools: tuple[dict[str, Any], ...]
    text: str
    starts_in_reasoning: bool
    engine_finish: str
    is_ambiguous: bool
    accepted: tuple[Expected, ...]
    splits: tuple[int, ...]
    why: str

    def accepts(self, answer: Answer) -> bool:
        """Whether `answer` is one of the right ones."""
        return any(expected.matches(answer) for expected in self.accepted)


def same_json(left: Any, right: Any) -> bool:
    """Equality of JSON values: numbers by value, `true` never equal to `1`, keys in any order."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def load_corpus(folder: Path) -> list[Vector]:
    """Every vector of every `*.jsonl` file of `folder`, in file and line order; raises `CorpusError` on a bad one."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise CorpusError(f"{folder}: no *.jsonl file there")
    vectors: list[Vector] = []
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                vectors.append(_vector(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise CorpusError(f"{path}:{number}: {type(error).__name__}: {error}") from error
    return vectors


def _vector(row: dict[str, Any]) -> Vector:
    is_ambiguous = bool(row.get("ambiguous", False))
    alternatives = _alternatives(row.get("alt")) if is_ambiguous else []
    accepted = [row["expect"], *({**row["expect"], **alternative} for alternative in alternatives)]
    return Vector(
        id=row["id"],
        format=row["format"],
        variant=row.get("variant"),
        tools=tuple(row["tools"] or ()),
        text=row["text"],
        starts_in_reasoning=row["starts_in_reasoning"],
        engine_finish=row["engine_finish"],
        is_ambiguous=is_ambiguous,
        accepted=tuple(map(_expected, accepted)),
        splits=tuple(row.get("splits") or ()),
        why=row.get("explain") or row.get("why", ""),
    )


def _alternatives(alt: Any) -> list[dict[str, Any]]:
    """`alt` is one object or a list of them; each is merged over `expect`."""
    return [alt] if isinstance(alt, dict) else list(alt or ())


def _expected(row: dict[str, Any]) -> Expected:
    return Expected(
        content=row["content"] or "",
        reasoning=row["reasoning_content"] or "",
        calls=tuple(ExpectedCall(call["name"], call["arguments"]) for call in row["tool_calls"] or ()),
        finish_reason=row["finish_reason"],
    )
