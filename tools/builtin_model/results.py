"""Tool results and how the model words them.

Owns: the text of results and of the answers. Does not know: which tool gave them.
"""

from __future__ import annotations

import json
from typing import Any

from tools.builtin_model.toolset import spoken
from tools.builtin_model.values import make_value
from tools.builtin_model.wire import raw_or_json, to_json
from tools.builtin_model.words import Words

_KEYS = [
    "temperature",
    "status",
    "result",
    "value",
    "price",
    "id",
    "name",
    "count",
    "total",
    "time",
    "date",
    "message",
    "sky",
    "wind",
    "city",
    "user",
    "title",
    "score",
    "rate",
    "amount",
    "level",
    "unit",
    "condition",
]
_SUCCESS = ("ok", "OK", "done", "success", "true", '{"status": "ok"}', '{"success": true}', "Done", "null")
_TEXTS = ("sentence", "words:1-3", "words:4-12", "int:0-9999", "city", "person", "money", "time_24", "url", "file_name")
_FIELDS = ("int:0-999", "int:-9-99", "word", "words:1-3", "number:0-99", "city", "person", "bool")
DONE = "Done."
EMPTY = "The tool gave no result."


def make_result(words: Words) -> tuple[str, str]:
    """(what the tool returns, the answer without its opening words)."""
    roll = words.random()
    if roll < 0.4:
        usual = words.choose(["sunny", "cloudy", "rainy", "22 C and sunny", "snow", f"{words.number(-20, 99)} degrees"])
        text = str(make_value(words, words.choose(_TEXTS))) if words.chance(0.8) else usual
        return text, text
    if roll < 0.47:
        return words.choose(_SUCCESS), DONE
    if roll < 0.5:
        return words.choose(["", "none", "[]", "{}"]), EMPTY
    if roll < 0.56:
        reason = words.words(1, 4)
        text = words.choose([f"error: {reason}", f"Error: {reason}", json.dumps({"error": reason})])
        return text, f"The tool failed: {reason}."
    if roll < 0.64:
        items = [words.word() for _ in range(words.number(1, 4))]
        return to_json(items), ", ".join(items)
    fields: dict[str, Any] = {}
    for _ in range(words.number(1, 4)):
        is_usual = words.chance(0.6) and not words.held_out
        key = words.choose(_KEYS) if is_usual else words.word() + words.choose(["", "", "_" + words.word()])
        fields[key] = make_value(words, words.choose(_FIELDS))
    return to_json(fields), ", ".join(f"{spoken(key)} {raw_or_json(value)}" for key, value in fields.items())


def merge_answers(answers: list[str]) -> str:
    """The answer to one or several results."""
    if len(answers) == 1:
        only = answers[0]
        return only if only in (DONE, EMPTY) or only.startswith("The tool failed") else f"The result is: {only}"
    return "The results are: " + "; ".join(answer.rstrip(".") for answer in answers)
