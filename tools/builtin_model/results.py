"""Tool results and how the model words them.

Owns: the text of results and of the answers. Does not know: which tool gave them.
"""

from __future__ import annotations

import json

from tools.builtin_model.toolset import spoken
from tools.builtin_model.wire import raw_or_json
from tools.builtin_model.words import Words

_KEYS = ["temperature", "status", "result", "value", "price", "id", "name", "count", "total", "time", "date", "message", "sky", "wind", "city", "user", "title", "score", "rate", "amount", "level", "unit", "condition"]
DONE = "Done."
EMPTY = "The tool gave no result."


def make_result(words: Words) -> tuple[str, str]:
    """(what the tool returns, the answer without its opening words). Answers that stand alone end with a full stop."""
    roll = words.random()
    if roll < 0.4:
        text = words.choose(
            [words.sentence(), f"{words.number(-20, 99)} degrees", words.words(1, 3), str(words.number(0, 9999)), words.city(), words.person(),
             words.choose(["sunny", "cloudy", "rainy", "22 C and sunny", "snow", "windy"]), f"{words.number(1, 12)}:{words.number(0, 59):02}", words.words(4, 12)]
        )  # fmt: skip
        return text, text
    if roll < 0.47:
        return words.choose(
            ["ok", "OK", "done", "success", "true", '{"status": "ok"}', '{"success": true}', "Done", "null"]
        ), DONE
    if roll < 0.5:
        return words.choose(["", "none", "[]", "{}"]), EMPTY
    if roll < 0.56:
        reason = words.words(1, 4)
        text = words.choose([f"error: {reason}", f"Error: {reason}", json.dumps({"error": reason})])
        return text, f"The tool failed: {reason}."
    if roll < 0.64:
        items = [words.word() for _ in range(words.number(1, 4))]
        return json.dumps(items, ensure_ascii=False), ", ".join(items)
    fields = {}
    for _ in range(words.number(1, 4)):
        key = (
            words.choose(_KEYS)
            if words.chance(0.6) and not words.held_out
            else words.word() + words.choose(["", "", "_" + words.word()])
        )
        fields[key] = words.choose(
            [
                words.number(0, 999),
                words.number(-9, 99),
                words.word(),
                words.words(1, 3),
                words.number(0, 99) + 0.5,
                words.city(),
                words.person(),
                words.chance(0.5),
            ]
        )
    return json.dumps(fields, ensure_ascii=False), ", ".join(
        f"{spoken(key)} {raw_or_json(value)}" for key, value in fields.items()
    )


def merge_answers(answers: list[str]) -> str:
    """The answer to one or several results."""
    if len(answers) == 1:
        only = answers[0]
        return only if only in (DONE, EMPTY) or only.startswith("The tool failed") else f"The result is: {only}"
    return "The results are: " + "; ".join(answer.rstrip(".") for answer in answers)
