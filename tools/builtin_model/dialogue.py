"""Whole dialogues in OpenAI form: the mix of skills and the number of turns.

Owns: how often what happens. Does not know: what a turn says (exchanges.py), text of formats (render.py), tokens.
Everything is drawn from one `Words`, so a seed gives the same dialogues on every machine.
"""

from __future__ import annotations

from tools.builtin_model import plain
from tools.builtin_model.exchanges import (
    Dialogue,
    Scene,
    call_exchange,
    follow_up,
    plain_exchange,
    refusal,
    two_calls,
)
from tools.builtin_model.families import any_family_tool
from tools.builtin_model.invented import make_invented_tool, pick_kinds
from tools.builtin_model.systems import filler, system_prompt
from tools.builtin_model.toolbox import MadeTool, pick_tools
from tools.builtin_model.wire import FORMAT_NAMES
from tools.builtin_model.words import Words

ARGUMENT_SKILLS = ("string", "number", "boolean", "enum", "list", "nested", "zero", "mixed")
TOOL_SKILLS = (*ARGUMENT_SKILLS, "family", "two calls", "second request", "follow-up", "result", "no tool",
               "tools, plain request", "long prompt")  # fmt: skip
PLAIN_SKILLS = tuple(plain.SKILLS)

# Shares of what the first request with tools is about.
_TOOL_SHARES = {"string": 10, "number": 5, "boolean": 5, "enum": 5, "list": 8, "nested": 5, "zero": 4, "mixed": 15,
                "family": 31, "two calls": 8, "no tool": 4, "tools, plain request": 4}  # fmt: skip
_DRAW, _WEIGHTS = tuple(_TOOL_SHARES), tuple(_TOOL_SHARES.values())
_LATER = ("family",) * 17 + ("two calls",) * 2 + ("tools, plain request",) * 2 + ("no tool",) + ("follow-up",) * 3
_BASE_SKILLS = {"second request": "mixed", "follow-up": "family", "result": "family", "long prompt": "family"}
PLAIN_SHARE, THINKING_SHARE, LONG_SHARE = 0.2, 0.3, 0.02


def training_dialogue(words: Words) -> Dialogue:
    """One dialogue of the training mix: some with tools and several requests, some plain, a few long ones."""
    dialogue = Dialogue(words.choose(FORMAT_NAMES), words.chance(THINKING_SHARE), "")
    scene = Scene(words, dialogue)
    is_long = words.chance(LONG_SHARE)
    _begin(scene, is_long)
    exchanges = words.number(1, 12) if is_long else words.choose([1, 1, 1, 1, 2, 2, 3, 4])
    if words.chance(PLAIN_SHARE):
        for index in range(exchanges):
            plain_exchange(scene, plain.pick_skill(words), index == exchanges - 1)
        return dialogue
    skill = words.rng.choices(_DRAW, _WEIGHTS)[0]
    _declare(scene, skill)
    _exchange(scene, scene.made[0], skill, exchanges == 1)
    for index in range(1, exchanges):
        _exchange(scene, words.choose(scene.made), words.choose(_LATER), index == exchanges - 1)
    return dialogue


def skill_dialogue(words: Words, skill: str, format_name: str, thinking: bool) -> Dialogue:
    """One dialogue whose last answer shows the skill (one of TOOL_SKILLS or PLAIN_SKILLS): for evaluation."""
    dialogue = Dialogue(format_name, thinking, skill)
    scene = Scene(words, dialogue)
    if skill == "long prompt":
        dialogue.say("system", filler(words, words.number(200, 1100)))
    elif words.chance(0.3):
        dialogue.say("system", system_prompt(words))
    if skill in PLAIN_SKILLS:
        plain_exchange(scene, skill, True)
        return dialogue
    _declare(scene, _BASE_SKILLS.get(skill, skill))
    target = scene.made[0]
    if skill in ("second request", "follow-up", "result"):
        call_exchange(scene, target, is_last=skill == "result", with_result=True)
    if skill == "second request" or (skill == "follow-up" and scene.followable is None):
        call_exchange(scene, words.choose(scene.made), is_last=True, with_result=False)
    elif skill != "result":
        _exchange(scene, target, skill, True, with_result=False)
    return dialogue


def _begin(scene: Scene, is_long: bool) -> None:
    words = scene.words
    prompt = system_prompt(words) if words.chance(0.35) else ""
    if is_long and words.chance(0.7):
        prompt = f"{prompt} {filler(words, words.number(100, 1100))}".strip()
    if prompt:
        scene.dialogue.say("system" if words.chance(0.9) else "developer", prompt)


def _declare(scene: Scene, skill: str) -> None:
    """Chooses the tools; the target comes first in `scene.made`, in the declarations anywhere."""
    words = scene.words
    target: MadeTool | None = None
    if skill in ARGUMENT_SKILLS:
        target = make_invented_tool(words, pick_kinds(words, skill))
    elif skill != "tools, plain request":
        target = any_family_tool(words) if skill == "family" or words.chance(0.5) else make_invented_tool(words)
    made = pick_tools(words, target, words.number(2, 8) if skill == "no tool" else None)
    scene.dialogue.tools = [each.tool.declaration(words) for each in made]
    if target is not None:
        made.remove(target)
        made.insert(0, target)
    scene.made = made


def _exchange(scene: Scene, target: MadeTool, skill: str, is_last: bool, with_result: bool | None = None) -> None:
    if skill == "tools, plain request":
        plain_exchange(scene, scene.words.choose(plain.BESIDE_TOOLS), is_last)
    elif skill == "two calls":
        two_calls(scene, is_last, with_result)
    elif skill == "follow-up" and follow_up(scene, is_last, with_result):
        return
    elif skill != "no tool" or not refusal(scene, is_last):
        call_exchange(scene, target, is_last, with_result)
