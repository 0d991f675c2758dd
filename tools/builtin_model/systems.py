"""System prompts, and filler that makes prompts long.

Owns: their text. Does not know: tools.
"""

from __future__ import annotations

from tools.builtin_model.words import Words, capitalize

_PROMPTS = ["You are a helpful assistant.", "You are a helpful assistant.", "Be brief.", "be brief", "You are an assistant that can call tools.", "Answer the user.", "You are a friendly robot.", "Use the tools when they fit.", "You are ATOM.", "Today is Monday.", "You are a careful assistant.", "brief", "Be concise.", "You are a helpful assistant with access to functions. Use them if required.", "You are a travel agent.", "Always be polite.", "You have tools. Call them when they help the user.", "Answer in one sentence.", "You are an expert.", "Help the user with the tools."]  # fmt: skip


def system_prompt(words: Words) -> str:
    """A short system prompt, usual or made up."""
    if words.chance(0.6):
        return words.choose(_PROMPTS)
    role = words.choose([words.pick("noun"), words.word()])
    first = words.choose(
        [
            f"You are a {role} assistant.",
            f"You help with {role}.",
            f"You work for {words.name_word()}.",
            "You are an agent.",
        ]
    )
    return first + (f" {filler(words, words.number(4, 30))}" if words.chance(0.6) else "")


def filler(words: Words, length: int) -> str:
    """About `length` words of sentences that mean nothing."""
    sentences = []
    while length > 0:
        size = words.number(4, 12)
        length -= size
        sentences.append(
            capitalize(" ".join(words.word() if words.chance(0.55) else words.pick("stopword") for _ in range(size)))
            + "."
        )
    return " ".join(sentences)
