"""One request and its answer, added to a dialogue: a call, several calls, a follow-up, a refusal, or plain talk.

Owns: what a turn says, results included. Does not know: the mix of skills (dialogue.py), text of formats, tokens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tools.builtin_model import plain
from tools.builtin_model.families import FamilyTool, any_family_tool
from tools.builtin_model.invented import make_invented_tool
from tools.builtin_model.render import Message
from tools.builtin_model.results import make_result, merge_answers
from tools.builtin_model.toolbox import MadeTool, is_unrelated
from tools.builtin_model.toolset import Parameter
from tools.builtin_model.values import enumeration, make_value
from tools.builtin_model.wire import Call
from tools.builtin_model.words import Words

_JOINTS = (
    ". Then {}",
    ". Also {}",
    ", and then {}",
    ". And {}",
    ". After that, {}",
    "; also {}",
    " {}",
    ". {}",
    " and {}",
)
_REPEATABLE_KINDS = frozenset(
    [
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
    ]
)
_MATH_WORDS = ("number", "math", "express", "calc", "sum", "comput", "integer")


@dataclass(slots=True)
class Dialogue:
    """A dialogue that ends with the assistant's answer. `thinking`: that answer begins with a thought."""

    format_name: str
    thinking: bool
    skill: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def say(self, role: str, content: str) -> None:
        """A turn of the user, a tool or the system."""
        self.messages.append({"role": role, "content": content})

    def answer(self, content: str, thought: str = "", calls: list[Call] | None = None) -> None:
        """An assistant turn; a thought is shown only in a thinking dialogue."""
        message: Message = {"role": "assistant", "content": content}
        if calls:
            message["tool_calls"] = [
                {"type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in calls
            ]
        if self.thinking and thought:
            message["reasoning_content"] = thought
        self.messages.append(message)


@dataclass(slots=True)
class Scene:
    """A dialogue in the making: its tools, and the last call that "And in Rome?" may follow."""

    words: Words
    dialogue: Dialogue
    made: list[MadeTool] = field(default_factory=list)
    followable: tuple[MadeTool, Parameter, dict[str, Any]] | None = None


def plain_exchange(scene: Scene, skill: str, is_last: bool) -> None:
    """A plain skill; sums give way to a greeting where a declared tool could do them."""
    if skill == "sums" and any(_is_math(tool) for tool in scene.dialogue.tools):
        skill = "greet"
    question, thought, answer = plain.SKILLS[skill](scene.words)
    scene.dialogue.say("user", question)
    scene.dialogue.answer(answer, thought if is_last else "")


def _is_math(tool: dict[str, Any]) -> bool:
    text = json.dumps(tool).lower()
    return any(word in text for word in _MATH_WORDS)


def refusal(scene: Scene, is_last: bool) -> bool:
    """A request that plainly fits no declared tool. False when none was found; a lone tool is never refused."""
    words = scene.words
    if len(scene.made) < 2:
        return False
    for _ in range(12):
        wanted = any_family_tool(words) if words.chance(0.6) else make_invented_tool(words)
        request, _ = wanted.request(words)
        if all(is_unrelated(request, wanted.tool, other.tool) for other in scene.made):
            scene.dialogue.say("user", request)
            scene.dialogue.answer(plain.NO_TOOL, "No tool fits." if is_last else "")
            return True
    return False


def call_exchange(scene: Scene, target: MadeTool, is_last: bool, with_result: bool | None = None) -> None:
    """One call. `with_result` None: a result follows where the dialogue goes on, and at times where it does not."""
    request, arguments = target.request(scene.words)
    scene.dialogue.say("user", request)
    scene.followable = next(((target, parameter, arguments) for parameter in _repeatable(target, arguments)), None)
    _finish(scene, [Call(target.tool.name, arguments)], is_last, with_result)


def follow_up(scene: Scene, is_last: bool, with_result: bool | None = None) -> bool:
    """ "And in Rome?": the last call again with another value. False where the last exchange allows none."""
    if scene.followable is None:
        return False
    target, parameter, arguments = scene.followable
    value = make_value(scene.words, parameter.kind)
    form = scene.words.phrase("follow up")
    if "in {" in form and parameter.kind != "city":
        form = "And {value}?"
    scene.dialogue.say("user", form.format(value=value))
    changed = {**arguments, parameter.name: value}
    scene.followable = (target, parameter, changed)
    _finish(scene, [Call(target.tool.name, changed)], is_last, with_result)
    return True


def _repeatable(made: MadeTool, arguments: dict[str, Any]) -> list[Parameter]:
    """Parameters whose value a request may vary: names of things, in realistic tools."""
    if not isinstance(made, FamilyTool):
        return []
    return [p for p in made.tool.parameters if p.kind in _REPEATABLE_KINDS and isinstance(arguments.get(p.name), str)]


def two_calls(scene: Scene, is_last: bool, with_result: bool | None = None) -> None:
    """Calls in one turn: a request for several values of a parameter, or two requests in one message."""
    words, first = scene.words, scene.made[0]
    scene.followable = None
    request, arguments = first.request(words)
    several = _several_values(words, first, request, arguments)
    if several:
        request, calls = several
    else:
        second = words.choose(scene.made)
        other_request, other = second.request(words)
        calls = [Call(first.tool.name, arguments)]
        # An end mark that belongs to a value cannot make way for the joint.
        if not (second is first and other == arguments) and not _ends_with_value(request, arguments):
            request = _join_requests(words, request, other_request, other)
            calls.append(Call(second.tool.name, other))
    scene.dialogue.say("user", request)
    _finish(scene, calls, is_last, with_result)


def _ends_with_value(request: str, arguments: dict[str, Any]) -> bool:
    return any(isinstance(v, str) and v[-1:] in (".", "!", "?") and request.endswith(v) for v in arguments.values())


def _join_requests(words: Words, first: str, second: str, arguments: dict[str, Any]) -> str:
    joint = words.choose(_JOINTS)
    if joint == " {}":
        return f"{first} {second}"
    return first.rstrip(".?!") + joint.format(second if joint == ". {}" else _lower_first(second, arguments))


def _lower_first(text: str, arguments: dict[str, Any]) -> str:
    """The text with a small first letter, unless it begins with a name or with an argument's value."""
    first = text.split(" ", 1)[0]
    is_value = any(str(value).startswith(first) for value in arguments.values())
    if is_value or first in ("I", "I'm") or not first.isalpha() or not first[1:].islower():
        return text
    return text[:1].lower() + text[1:]


def _several_values(
    words: Words, made: MadeTool, request: str, arguments: dict[str, Any]
) -> tuple[str, list[Call]] | None:
    """ "What is the weather in Paris and Rome?": the request for two or three values, and a call for each."""
    if words.chance(0.3):
        return None
    for parameter in _repeatable(made, arguments):
        value = arguments[parameter.name]
        if request.count(value) == 1:
            others = [make_value(words, parameter.kind) for _ in range(words.choose([1, 1, 1, 2]))]
            values = list(dict.fromkeys([value, *others]))
            if len(values) < 2 or any(other in request for other in values[1:]):
                return None
            text = enumeration(words, values)
            if len(values) == 2 and words.chance(0.4):
                is_place = parameter.kind == "city" and f"in {value}" in request
                text = value + words.choose([" and also ", " and in " if is_place else " and "]) + values[1]
            calls = [Call(made.tool.name, {**arguments, parameter.name: each}) for each in values]
            return request.replace(value, text), calls
    return None


def _finish(scene: Scene, calls: list[Call], is_last: bool, with_result: bool | None) -> None:
    """The calls; then, unless the dialogue ends here, their results and the answer."""
    words, dialogue = scene.words, scene.dialogue
    if with_result is None:
        with_result = not is_last or words.chance(0.3)
    keeps_thought = is_last and (not with_result or words.chance(0.6))
    dialogue.answer("", call_thought([call.name for call in calls]) if keeps_thought else "", calls)
    if with_result:
        results = [make_result(words) for _ in calls]
        for content, _ in results:
            dialogue.say("tool", content)
        dialogue.answer(merge_answers([answer for _, answer in results]), "I have the result." if is_last else "")


def call_thought(names: list[str]) -> str:
    """The thought before calls names the tools and nothing else, so that it cannot go wrong in the arguments."""
    if len(names) == 1:
        return f"The tool {names[0]} fits."
    if len(set(names)) == 1:
        return f"The tool {names[0]} fits {'twice' if len(names) == 2 else f'{len(names)} times'}."
    return f"The tools {' and '.join(names)} fit."
