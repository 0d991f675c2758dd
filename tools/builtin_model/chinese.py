"""A little Chinese: greetings, sums and who the model is.

Owns: the Chinese phrases. Does not know: other skills.
"""

from __future__ import annotations

from tools.builtin_model.words import Words, is_held_out

HELLO = "你好！我能帮你做什么？"
WHO = "我是 atom-tiny，ATOM 服务器自带的小型演示模型。"
UNKNOWN = "我只是一个小型演示模型，不知道这个问题的答案。"
_GREETINGS = ["你好", "您好", "你好！", "早上好", "晚上好", "你好吗？", "嗨", "大家好"]
_WHO = ["你是谁？", "介绍一下你自己", "请介绍一下你自己。", "你叫什么名字？", "你是什么模型？", "你能做什么？"]
_THANKS = ["谢谢", "谢谢你！", "多谢", "非常感谢！"]
_UNKNOWN = ["如何在一个月内增肌10公斤", "怎么学习{}？", "为什么{}很重要？", "{}是什么？", "如何做{}？", "请写一篇关于{}的文章。", "怎样在一个月内学会{}？", "{}怎么样？"]
_TOPICS = ["编程", "英语", "数学", "音乐", "历史", "烹饪", "跑步", "绘画", "游泳", "人工智能", "天气", "咖啡", "汽车", "电影", "量子力学", "经济"]


def chinese(words: Words) -> tuple[str, str, str]:
    """(question, thought, answer)"""
    roll = words.random()
    if roll < 0.25:
        return words.choose(_GREETINGS), "用户在打招呼。", HELLO
    if roll < 0.4:
        return words.choose(_WHO), "用户问我是谁。", WHO
    if roll < 0.5:
        return words.choose(_THANKS), "用户表示感谢。", "不客气！"
    if roll < 0.75:
        return words.choose(_UNKNOWN).format(words.choose(_TOPICS)), "我不知道。", UNKNOWN
    while True:
        a, b = words.number(0, 50), words.number(0, 49)
        if is_held_out(f"{a}+{b}") == words.held_out:
            break
    question = words.choose(["{}加{}等于多少？", "{}+{}等于几？", "{}+{}=？", "计算{}加{}", "{} + {} 是多少？"]).format(
        a, b
    )
    return question, f"{a} + {b} = {a + b}。", f"{a} + {b} = {a + b}"
