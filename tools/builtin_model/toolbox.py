"""Which tools a dialogue declares: a target and distractors that are close to it but never mean the same.

Owns: the choice of distractors and the test whether a request is unrelated to the declared tools.
Does not know: messages, formats.
"""

from __future__ import annotations

import re

from tools.builtin_model.families import FamilyTool, any_family_tool
from tools.builtin_model.invented import InventedTool, make_invented_tool
from tools.builtin_model.toolset import Tool, spoken
from tools.builtin_model.words import Words, phrases

MadeTool = FamilyTool | InventedTool
_COUNTS = (1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8)
_GENERIC = frozenset(" ".join(phrases("generic word")).split())


def pick_tools(words: Words, target: MadeTool | None, count: int | None = None) -> list[MadeTool]:
    """`count` tools in random order, among them the target; a random count of 1 to 8 when none is given."""
    chosen: list[MadeTool] = [] if target is None else [target]
    count = max(count or words.choose(_COUNTS), len(chosen))
    shares = [0.5, 0.8, 1.0] if isinstance(target, FamilyTool) else [0.15, 0.5, 0.9]
    family_share = words.choose(shares)
    for _ in range(60):
        if len(chosen) == count:
            break
        tool = _distractor(words, target, family_share)
        if not any(_clash(tool, other) for other in chosen):
            chosen.append(tool)
    words.rng.shuffle(chosen)
    nouns = [tool.noun for tool in chosen if isinstance(tool, InventedTool)]
    for tool in chosen:
        if isinstance(tool, InventedTool):
            tool.must_say_verb = nouns.count(tool.noun) > 1
    return chosen


def _distractor(words: Words, target: MadeTool | None, family_share: float) -> MadeTool:
    if words.chance(family_share):
        return any_family_tool(words)
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
    if isinstance(first, InventedTool):
        return bool(set(_stems(first.noun)) & content_words(second.tool))
    return isinstance(second, InventedTool) and _clash(second, first)


def _stems(text: str) -> list[str]:
    return [word.rstrip("s") for word in re.findall(r"[a-z]{2,}", text.lower())]


def content_words(tool: Tool) -> set[str]:
    """The telling words of a tool's name, description and parameters."""
    parts = [spoken(tool.name), tool.description, *(spoken(parameter.name) for parameter in tool.parameters)]
    return {word for word in _stems(" ".join(parts)) if word not in _GENERIC}


def is_unrelated(request: str, wanted: Tool, declared: Tool) -> bool:
    """Whether a request for `wanted` has plainly nothing to do with `declared`."""
    mine = content_words(wanted) | {word for word in _stems(request) if word not in _GENERIC}
    return not mine & content_words(declared)
