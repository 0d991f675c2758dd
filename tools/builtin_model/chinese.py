"""A little Chinese: greetings, sums and who the model is.

Owns: the Chinese answers (the questions are in data/phrases.txt). Does not know: other skills.
"""

from __future__ import annotations

from tools.builtin_model.words import Words, is_held_out

HELLO = "你好！我能帮你做什么？"
WHO = "我是 atom-tiny，ATOM 服务器自带的小型演示模型。"
UNKNOWN = "我只是一个小型演示模型，不知道这个问题的答案。"
WELCOME = "不客气！"


def chinese(words: Words) -> tuple[str, str, str]:
    """(question, thought, answer)"""
    roll = words.random()
    if roll < 0.25:
        return words.phrase("chinese greeting"), "用户在打招呼。", HELLO
    if roll < 0.4:
        return words.phrase("chinese who"), "用户问我是谁。", WHO
    if roll < 0.5:
        return words.phrase("chinese thanks"), "用户表示感谢。", WELCOME
    if roll < 0.75:
        question = words.phrase("chinese unknown").format(words.phrase("chinese topic"))
        return question, "我不知道。", UNKNOWN
    while True:
        a, b = words.number(0, 50), words.number(0, 49)
        if is_held_out(f"{a}+{b}") == words.held_out:
            break
    return words.phrase("chinese sum").format(a, b), f"{a} + {b} = {a + b}。", f"{a} + {b} = {a + b}"
