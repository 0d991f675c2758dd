"""Which tools a dialogue declares: a target and distractors that are close to it but never mean the same.

Owns: the choice of distractors and the test whether a request is unrelated to the declared tools. Does not know: messages, formats.
"""

from __future__ import annotations

import re

from tools.builtin_model.families import FamilyTool, load_families, make_family_tool
from tools.builtin_model.invented import InventedTool, make_invented_tool
from tools.builtin_model.toolset import Tool, spoken
from tools.builtin_model.words import Words

MadeTool = FamilyTool | InventedTool
_COUNTS = (1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8)
_GENERIC = set(
    ["get", "set", "find", "create", "make", "show", "list", "add", "search", "look", "check", "read", "the", "a", "an", "of", "for", "to", "in", "on", "by", "and", "or", "with", "from", "is", "are", "it", "me", "my", "this", "that", "what", "which", "how", "please", "can", "you", "i", "want", "need", "user", "name", "id", "number", "tool", "use", "value", "new", "one", "all", "do", "does", "call", "run", "at", "as", "be", "city", "date", "time", "text", "when", "where", "there", "your", "current", "given", "return", "two", "between", "into", "about", "over", "have", "has", "will", "would", "could", "should"]
)


def pick_tools(
    words: Words, target: MadeTool | None, count: int | None = None, also: tuple[MadeTool, ...] = ()
) -> list[MadeTool]:
    """`count` tools in random order, among them the target and `also`; a random count of 1 to 8 when none is given."""
    chosen: list[MadeTool] = [tool for tool in (target, *also) if tool is not None]
    count = max(count or words.choose(_COUNTS), len(chosen))
    family_share = (
        words.choose([0.15, 0.5, 0.9]) if not isinstance(target, FamilyTool) else words.choose([0.5, 0.8, 1.0])
    )
    attempts = 0
    while len(chosen) < count and attempts < 60:
        attempts += 1
        tool = _distractor(words, target, family_share)
        if not any(_clash(tool, other) for other in chosen):
            chosen.append(tool)
    words.rng.shuffle(chosen)
    for tool in chosen:
        if isinstance(tool, InventedTool):
            tool.must_say_verb = any(
                isinstance(other, InventedTool) and other is not tool and other.noun == tool.noun for other in chosen
            )
    return chosen


def _distractor(words: Words, target: MadeTool | None, family_share: float) -> MadeTool:
    if words.chance(family_share):
        return make_family_tool(words, words.choose(load_families()))
    if isinstance(target, InventedTool) and words.chance(0.4):
        same_verb = words.chance(0.5)
        return make_invented_tool(words, verb=target.verb if same_verb else "", noun="" if same_verb else target.noun)
    return make_invented_tool(words)


def _clash(first: MadeTool, second: MadeTool) -> bool:
    """Whether two tools must not stand side by side: same name, same group, or the same thing under other words."""
    if first.tool.name == second.tool.name or first.group == second.group:
        return True
    if isinstance(first, InventedTool) and isinstance(second, InventedTool):
        return first.noun == second.noun and (first.is_getter or second.is_getter or first.verb == second.verb)
    if isinstance(first, FamilyTool) and isinstance(second, FamilyTool):
        return False
    invented, family = (first, second) if isinstance(first, InventedTool) else (second, first)
    assert isinstance(invented, InventedTool)
    return bool(set(_stems(invented.noun)) & content_words(family.tool))


def _stems(text: str) -> list[str]:
    return [word.rstrip("s") for word in re.findall(r"[a-z]{2,}", text.lower())]


def content_words(tool: Tool) -> set[str]:
    """The telling words of a tool's name, description and parameters."""
    text = " ".join([spoken(tool.name), tool.description, *(spoken(parameter.name) for parameter in tool.parameters)])
    return {word for word in _stems(text) if word not in _GENERIC}


def is_unrelated(request: str, wanted: Tool, declared: Tool) -> bool:
    """Whether a request for `wanted` has plainly nothing to do with `declared`."""
    mine = content_words(wanted) | {word for word in _stems(request) if word not in _GENERIC}
    return not mine & content_words(declared)
