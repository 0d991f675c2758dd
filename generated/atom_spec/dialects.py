# Derived from spec/formats/reasoning/*.yaml by spec/codegen; edit that and run `make generate`.
"""Reasoning dialects: markers, evidence, switches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThinkingSwitch:
    """A template keyword with the values that turn thinking off and on."""

    keyword: str
    off: bool | str
    on: bool | str


@dataclass(frozen=True, slots=True)
class DialectExample:
    """A text after the generation prompt, and how it splits."""

    text: str
    begins_inside: bool
    reasoning: str
    content: str


@dataclass(frozen=True, slots=True)
class ReasoningDialect:
    """How a model sets its thoughts apart.

    in_format: the wire format's own reader separates them, there are no markers here. order: of detection, lowest
    first. evidence: one of these in what a template renders names the dialect. switches: candidates, in this order.
    """

    name: str
    title: str
    start: str
    end: str
    in_format: bool
    order: int
    evidence: tuple[str, ...]
    switches: tuple[ThinkingSwitch, ...]
    effort_keywords: tuple[str, ...]
    examples: tuple[DialectExample, ...]


DIALECTS: dict[str, ReasoningDialect] = {
    "k3": ReasoningDialect(
        name="k3",
        title="Kimi-K3 think channel",
        start="<|open|>think<|sep|>",
        end="<|close|>think<|sep|>",
        in_format=False,
        order=10,
        evidence=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        switches=(
            ThinkingSwitch("thinking", off=False, on=True),
            ThinkingSwitch("enable_thinking", off=False, on=True),
        ),
        effort_keywords=("thinking_effort", "reasoning_effort"),
        examples=(
            DialectExample(
                begins_inside=True,
                content="<|open|>response<|sep|>Hi",
                reasoning="Short.",
                text="Short.<|close|>think<|sep|><|open|>response<|sep|>Hi",
            ),
        ),
    ),
    "mm_think": ReasoningDialect(
        name="mm_think",
        title="<mm:think> ... </mm:think>",
        start="<mm:think>",
        end="</mm:think>",
        in_format=False,
        order=20,
        evidence=("<mm:think>", "</mm:think>"),
        switches=(
            ThinkingSwitch("thinking_mode", off="disabled", on="enabled"),
            ThinkingSwitch("enable_thinking", off=False, on=True),
        ),
        effort_keywords=("reasoning_effort",),
        examples=(
            DialectExample(
                begins_inside=False, content="No thought needed.", reasoning="", text="</mm:think>No thought needed."
            ),
            DialectExample(
                begins_inside=False, content="Done.", reasoning="a <b> c", text="<mm:think>a <b> c</mm:think>Done."
            ),
        ),
    ),
    "bracket_think": ReasoningDialect(
        name="bracket_think",
        title="[THINK] ... [/THINK]",
        start="[THINK]",
        end="[/THINK]",
        in_format=False,
        order=30,
        evidence=("[THINK]", "[/THINK]"),
        switches=(),
        effort_keywords=("reasoning_effort",),
        examples=(
            DialectExample(
                begins_inside=False, content="Six.", reasoning="2 x [3] = 6", text="[THINK]2 x [3] = 6[/THINK]Six."
            ),
        ),
    ),
    "harmony": ReasoningDialect(
        name="harmony",
        title="harmony analysis channel",
        start="",
        end="",
        in_format=True,
        order=40,
        evidence=("<|channel|>analysis<|message|>", "# Valid channels: analysis"),
        switches=(),
        effort_keywords=("reasoning_effort",),
        examples=(),
    ),
    "think": ReasoningDialect(
        name="think",
        title="<think> ... </think>",
        start="<think>",
        end="</think>",
        in_format=False,
        order=50,
        evidence=("<think>", "</think>", "<|tool_calls_section_begin|>"),
        switches=(
            ThinkingSwitch("thinking", off=False, on=True),
            ThinkingSwitch("enable_thinking", off=False, on=True),
            ThinkingSwitch("thinking_mode", off="chat", on="thinking"),
        ),
        effort_keywords=("reasoning_effort", "thinking_effort"),
        examples=(
            DialectExample(
                begins_inside=False,
                content="\n\nFour.",
                reasoning="\nTwo and two.\n",
                text="<think>\nTwo and two.\n</think>\n\nFour.",
            ),
            DialectExample(
                begins_inside=True, content="Five.", reasoning="Count them.", text="Count them.</think>Five."
            ),
            DialectExample(begins_inside=True, content="Five.", reasoning="", text="</think>Five."),
            DialectExample(
                begins_inside=False,
                content="\nA chat-mode prompt closed the block.",
                reasoning="",
                text="</think>\nA chat-mode prompt closed the block.",
            ),
            DialectExample(begins_inside=False, content="One. Two.", reasoning="hm", text="One. <think>hm</think>Two."),
            DialectExample(
                begins_inside=True,
                content="",
                reasoning="Cut in the middle of a tho",
                text="Cut in the middle of a tho",
            ),
        ),
    ),
}
