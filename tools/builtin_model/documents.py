"""Training documents: rendered dialogues and a little plain text for the completions endpoint.

Owns: the share and the forms of plain text. Does not know: tokens.
"""

from __future__ import annotations

from tools.builtin_model import plain
from tools.builtin_model.dialogue import training_dialogue
from tools.builtin_model.render import Segment, render
from tools.builtin_model.systems import filler
from tools.builtin_model.wire import to_json
from tools.builtin_model.words import Words

END_OF_TEXT = "<|endoftext|>"
_NUMBER_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def training_document(words: Words) -> list[Segment]:
    """One document in segments; trained segments are what the model learns to write."""
    if words.chance(0.025):
        return [(_plain_text(words) + END_OF_TEXT, True)]
    dialogue = training_dialogue(words)
    return render(dialogue.messages, dialogue.tools, dialogue.format_name)


def _plain_text(words: Words) -> str:
    roll = words.random()
    if roll < 0.2:
        start = words.number(0, 9)
        numbers = _NUMBER_WORDS[start : start + words.number(3, 9)]
        first = numbers[0].capitalize() if words.chance(0.6) else numbers[0]
        return words.choose([" ", " ", ", "]).join([first, *numbers[1:]])
    if roll < 0.35:
        line = words.words(2, 7)
        lead = words.choose(["Copy this line: ", "Repeat: ", "Reply with only: ", "Copy: "])
        return f"{lead}{line}\n{line}"
    if roll < 0.5:
        return words.phrase("plain line")
    if roll < 0.6:
        return plain.story(words)[2]
    if roll < 0.7:
        start = words.number(0, 50)
        return ", ".join(str(start + i) for i in range(words.number(4, 20)))
    if roll < 0.8:
        return f"{words.choose(['Random words:', 'Words:', 'List:'])} {words.words(4, 20)}"
    if roll < 0.85:
        return to_json({words.word(): words.word() for _ in range(words.number(1, 4))})
    return filler(words, words.number(5, 60))
