"""System prompts, and filler that makes prompts long.

Owns: made-up prompts (the usual ones are in data/phrases.txt). Does not know: tools.
"""

from __future__ import annotations

from tools.builtin_model.words import Words, capitalize


def system_prompt(words: Words) -> str:
    """A short system prompt, usual or made up."""
    if words.chance(0.6):
        return words.phrase("system")
    role = words.choose([words.pick("noun"), words.word()])
    forms = [
        f"You are a {role} assistant.",
        f"You help with {role}.",
        f"You work for {words.name_word()}.",
        "You are an agent.",
    ]
    return words.choose(forms) + (f" {filler(words, words.number(4, 30))}" if words.chance(0.6) else "")


def filler(words: Words, length: int) -> str:
    """About `length` words of sentences that mean nothing."""
    sentences = []
    while length > 0:
        size = words.number(4, 12)
        length -= size
        parts = (words.word() if words.chance(0.55) else words.pick("stopword") for _ in range(size))
        sentences.append(capitalize(" ".join(parts)) + ".")
    return " ".join(sentences)
