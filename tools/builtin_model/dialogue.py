"""Whole dialogues in OpenAI form: tools, messages, and whether the last answer is thought through first.

Owns: the mix of skills, multi-turn structure, results and answers. Does not know: text of formats (render.py), tokens.
Everything is drawn from one `Words`, so a seed gives the same dialogues on every machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tools.builtin_model import plain
from tools.builtin_model.families import FamilyTool, load_families, make_family_tool
from tools.builtin_model.invented import make_invented_tool, pick_kinds
from tools.builtin_model.render import Message
from tools.builtin_model.results import make_result, merge_answers
from tools.builtin_model.systems import filler, system_prompt
from tools.builtin_model.toolbox import MadeTool, is_unrelated, pick_tools
from tools.builtin_model.toolset import Parameter, Tool
from tools.builtin_model.values import enumeration, make_value
from tools.builtin_model.wire import FORMAT_NAMES, Call
from tools.builtin_model.words import Words

ARGUMENT_SKILLS = ("string", "number", "boolean", "enum", "list", "nested", "zero", "mixed")
TOOL_SKILLS = (
    *ARGUMENT_SKILLS,
    "family",
    "two calls",
    "second request",
    "result",
    "no tool",
    "tools, plain request",
    "long prompt",
)
PLAIN_SKILLS = tuple(plain.SKILLS)
_TOOL_SHARES = {"string": 10, "number": 5, "boolean": 5, "enum": 5, "list": 8, "nested": 5, "zero": 4, "mixed": 15, "family": 30, "two calls": 8, "no tool": 5,
                "tools, plain request": 4}  # fmt: skip
_DRAW = tuple(_TOOL_SHARES)
_WEIGHTS = tuple(_TOOL_SHARES.values())


@dataclass(slots=True)
class Dialogue:
    """A dialogue that ends with the assistant's answer. `thinking`: that answer begins with a thought."""

    format_name: str
    thinking: bool
    skill: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def say(self, role: str, content: str) -> None:
        self.messages.append({"role": role, "content": content})

    def answer(self, content: str, thought: str, calls: list[Call] | None = None, is_last: bool = True) -> None:
        """An assistant turn; the thought is kept only where the dialogue is a thinking one and this is a turn that shows it."""
        message: Message = {"role": "assistant", "content": content}
        if calls:
            message["tool_calls"] = [
                {"type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in calls
            ]
        if self.thinking and is_last:
            message["reasoning_content"] = thought
        self.messages.append(message)


def training_dialogue(words: Words) -> Dialogue:
    """One dialogue of the training mix: some with tools and several requests, some plain, a few long ones."""
    dialogue = Dialogue(words.choose(FORMAT_NAMES), words.chance(0.3), "")
    is_long = words.chance(0.02)
    _begin(words, dialogue, is_long)
    exchanges = words.choose([1, 1, 1, 1, 2, 2, 3, 4]) if not is_long else words.number(1, 12)
    if words.chance(0.2):
        for index in range(exchanges):
            _plain_exchange(words, dialogue, plain.pick_skill(words), index == exchanges - 1)
        return dialogue
    skill = words.rng.choices(_DRAW, _WEIGHTS)[0]
    made = _tools_for(words, skill)
    dialogue.tools = [each.tool.declaration(words) for each in made]
    _tool_exchange(words, dialogue, made, made[0] if skill != "no tool" else None, skill, exchanges == 1)
    for index in range(1, exchanges):
        roll = words.random()
        next_skill = (
            "family"
            if roll < 0.8
            else "two calls"
            if roll < 0.88
            else "tools, plain request"
            if roll < 0.96
            else "no tool"
        )
        _tool_exchange(words, dialogue, made, words.choose(made), next_skill, index == exchanges - 1)
    words.rng.shuffle(dialogue.tools)
    return dialogue


def skill_dialogue(words: Words, skill: str, format_name: str, thinking: bool) -> Dialogue:
    """One dialogue whose last answer shows the skill (one of TOOL_SKILLS or PLAIN_SKILLS): for evaluation."""
    dialogue = Dialogue(format_name, thinking, skill)
    if skill == "long prompt":
        dialogue.say("system", filler(words, words.number(200, 1100)))
    elif words.chance(0.3):
        dialogue.say("system", system_prompt(words))
    if skill in PLAIN_SKILLS:
        _plain_exchange(words, dialogue, skill, True)
        return dialogue
    base = {"second request": "mixed", "result": "family", "long prompt": "family"}.get(skill, skill)
    made = _tools_for(words, base)
    dialogue.tools = [each.tool.declaration(words) for each in made]
    words.rng.shuffle(dialogue.tools)
    if skill in ("second request", "result"):
        dialogue.thinking = thinking and skill == "result"
        _call_exchange(words, dialogue, made, made[0], is_last=skill == "result", with_result=True)
        dialogue.thinking = thinking
    if skill == "second request":
        _call_exchange(words, dialogue, made, words.choose(made), is_last=True, with_result=False)
    elif skill != "result":
        _tool_exchange(words, dialogue, made, made[0] if skill != "no tool" else None, skill, True, with_result=False)
    return dialogue


def _begin(words: Words, dialogue: Dialogue, is_long: bool) -> None:
    prompt = system_prompt(words) if words.chance(0.35) else ""
    if is_long and words.chance(0.7):
        prompt = f"{prompt} {filler(words, words.number(100, 1100))}".strip()
    if prompt:
        dialogue.say("system" if words.chance(0.9) else "developer", prompt)


def _tools_for(words: Words, skill: str) -> list[MadeTool]:
    """The declared tools, the target first."""
    if skill == "tools, plain request":
        return pick_tools(words, None)
    target: MadeTool
    if skill in ARGUMENT_SKILLS:
        target = make_invented_tool(words, pick_kinds(words, skill))
    elif skill == "family" or words.chance(0.5):
        target = make_family_tool(words, words.choose(load_families()))
    else:
        target = make_invented_tool(words)
    made = pick_tools(words, target, words.number(2, 8) if skill == "no tool" else None)
    made.remove(target)
    return [target, *made]


def _tool_exchange(
    words: Words,
    dialogue: Dialogue,
    made: list[MadeTool],
    target: MadeTool | None,
    skill: str,
    is_last: bool,
    with_result: bool | None = None,
) -> None:
    if skill == "tools, plain request":
        _plain_exchange(words, dialogue, words.choose(plain.BESIDE_TOOLS), is_last)
    elif skill == "no tool" and _refusal(words, dialogue, is_last):
        return
    elif skill == "two calls":
        _two_calls(words, dialogue, made, is_last, with_result)
    else:
        _call_exchange(words, dialogue, made, target or words.choose(made), is_last, with_result)


def _plain_exchange(words: Words, dialogue: Dialogue, skill: str, is_last: bool) -> None:
    if dialogue.tools and skill == "sums" and any(_is_math(tool) for tool in dialogue.tools):
        skill = "greet"
    question, thought, answer = plain.SKILLS[skill](words)
    dialogue.say("user", question)
    dialogue.answer(answer, thought, is_last=is_last)


def _is_math(tool: dict[str, Any]) -> bool:
    text = json.dumps(tool).lower()
    return any(word in text for word in ("number", "math", "express", "calc", "sum", "comput", "integer"))


def _refusal(words: Words, dialogue: Dialogue, is_last: bool) -> bool:
    """A request that plainly fits no declared tool. False when none was found; a lone tool is never refused."""
    declared = dialogue.tools
    if len(declared) < 2:
        return False
    for _ in range(12):
        wanted = (
            make_family_tool(words, words.choose(load_families())) if words.chance(0.6) else make_invented_tool(words)
        )
        request, _ = wanted.request(words)
        if all(is_unrelated(request, wanted.tool, _as_tool(tool)) for tool in declared):
            dialogue.say("user", request)
            dialogue.answer(plain.NO_TOOL, "No tool fits.", is_last=is_last)
            return True
    return False


def _as_tool(declaration: dict[str, Any]) -> Tool:
    function = declaration["function"]
    properties = function.get("parameters", {}).get("properties", {})
    return Tool(
        function["name"], function.get("description", ""), [Parameter(name, name, "", {}) for name in properties]
    )


def _call_exchange(
    words: Words,
    dialogue: Dialogue,
    made: list[MadeTool],
    target: MadeTool,
    is_last: bool,
    with_result: bool | None = None,
) -> None:
    request, arguments = target.request(words)
    dialogue.say("user", request)
    name = target.tool.name
    _finish_calls(words, dialogue, [Call(name, arguments)], f"The tool {name} fits.", is_last, with_result)


def _two_calls(words: Words, dialogue: Dialogue, made: list[MadeTool], is_last: bool, with_result: bool | None) -> None:
    """Two calls in one turn: one request for two values, or two requests in one message."""
    first = made[0]
    request, arguments = first.request(words)
    several = _several_values(words, first, request, arguments)
    if several:
        request, calls = several
    else:
        second = words.choose(made)
        other_request, other = second.request(words)
        if second is first and other == arguments:
            _finish_single(words, dialogue, first, request, arguments, is_last, with_result)
            return
        joint = words.choose(
            [
                ". Then {}",
                ". Also {}",
                ", and then {}",
                ". And {}",
                ". After that, {}",
                "; also {}",
                " {}",
                ". {}",
                " and {}",
            ]
        )
        is_new_sentence = joint in (" {}", ". {}")
        second_text = other_request if is_new_sentence else _lower_first(other_request, other)
        request = (request if joint == " {}" and request[-1:] in ".?!" else request.rstrip(".?!")) + joint.format(
            second_text
        )
        calls = [Call(first.tool.name, arguments), Call(second.tool.name, other)]
    dialogue.say("user", request)
    names = [call.name for call in calls]
    thought = (
        f"The tool {names[0]} fits {'twice' if len(names) == 2 else f'{len(names)} times'}."
        if names[0] == names[1]
        else f"The tools {names[0]} and {names[1]} fit."
    )
    _finish_calls(words, dialogue, calls, thought, is_last, with_result)


def _finish_single(
    words: Words,
    dialogue: Dialogue,
    target: MadeTool,
    request: str,
    arguments: dict[str, Any],
    is_last: bool,
    with_result: bool | None,
) -> None:
    dialogue.say("user", request)
    _finish_calls(
        words, dialogue, [Call(target.tool.name, arguments)], f"The tool {target.tool.name} fits.", is_last, with_result
    )


def _lower_first(text: str, arguments: dict[str, Any]) -> str:
    """The text with a small first letter, unless it begins with a name or with an argument's value."""
    first = text.split(" ", 1)[0]
    is_value = any(str(value).startswith(first) for value in arguments.values())
    return (
        text
        if is_value or first in ("I", "I'm") or not first.isalpha() or not first[1:].islower()
        else text[:1].lower() + text[1:]
    )


_REPEATABLE = {
    "city",
    "person",
    "country",
    "ticker",
    "word",
    "company",
    "path",
    "team",
    "animal",
    "planet",
    "device",
    "room",
    "food",
    "element",
    "crypto",
}


def _several_values(
    words: Words, made: MadeTool, request: str, arguments: dict[str, Any]
) -> tuple[str, list[Call]] | None:
    """ "What is the weather in Paris and Rome?": the request for two or three values of one parameter, and a call for each."""
    if not isinstance(made, FamilyTool) or words.chance(0.3):
        return None
    for parameter in made.tool.parameters:
        value = arguments.get(parameter.name)
        if parameter.kind in _REPEATABLE and isinstance(value, str) and request.count(value) == 1:
            others = [make_value(words, parameter.kind) for _ in range(words.choose([1, 1, 1, 2]))]
            values = list(dict.fromkeys([value, *others]))
            if len(values) < 2 or any(other in request for other in values[1:]):
                return None
            text = enumeration(words, values)
            if len(values) == 2 and words.chance(0.4):
                is_place = parameter.kind == "city" and f"in {value}" in request
                text = value + words.choose([" and also ", " and in " if is_place else " and "]) + values[1]
            name = made.tool.name
            return request.replace(value, text), [Call(name, {**arguments, parameter.name: each}) for each in values]
    return None


def _finish_calls(
    words: Words, dialogue: Dialogue, calls: list[Call], thought: str, is_last: bool, with_result: bool | None
) -> None:
    """The calls; then, unless the dialogue ends here, their results and the answer."""
    if with_result is None:
        with_result = not is_last or words.chance(0.3)
    keeps_thought = is_last and (not with_result or words.chance(0.6))
    dialogue.answer("", thought, calls, is_last=keeps_thought)
    if not with_result:
        return
    results = [make_result(words) for _ in calls]
    for content, _ in results:
        dialogue.say("tool", content)
    dialogue.answer(merge_answers([answer for _, answer in results]), "I have the result.", is_last=is_last)
