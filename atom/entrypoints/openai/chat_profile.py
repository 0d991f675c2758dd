"""What is known of a model's way to chat: found out once, at startup, by rendering its template.

Owns the choice of wire format and reasoning dialect, the keyword that switches thinking, and which of a request's
controls the template gets to see. Nothing here is ever revised by what the model writes. Knows no requests and no HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from atom_spec.dialects import ReasoningDialect, ThinkingSwitch
from atom_spec.formats import FormatSpec

from atom.entrypoints.openai.chat_encoders import ChatEncoder, ChatTemplateError
from atom.entrypoints.openai.marker_tokens import marker_token_ids
from atom.entrypoints.openai.messages_conversion import TemplateNeeds, convert_messages
from atom.entrypoints.openai.pipeline import AnswerPipeline, TextStages
from atom.entrypoints.openai.reasoning_dialects import DialectDetection, begins_inside, detect_dialect
from atom.entrypoints.openai.template_needs import (
    ARGUMENT,
    PROBE_TOOL,
    SPOKEN,
    THOUGHT,
    USER,
    probe_call,
    probe_needs,
    try_render,
)
from atom.entrypoints.openai.tool_parser.registry import detect_format, get_format, variant_of
from atom.entrypoints.openai.tool_parser.stream import Tool
from atom.text.detokenizer import Detokenizer
from atom.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
EFFORT_KEYWORDS = ("reasoning_effort", "thinking_effort")
SWITCH_ALIASES = ("enable_thinking", "thinking")
TAIL = 40  # characters of a prompt's end that the log shows
_PROBE_USER: dict[str, Any] = {"role": "user", "content": USER}


@dataclass(frozen=True, slots=True)
class ChatProfile:
    """A model's format, dialect and template controls.

    thinking_switch: the template keyword that turns thinking off and on; None when nothing does. effort_keyword and
    efforts: the keyword for how much to think, and the levels that the template takes. begins_inside: whether answers
    to an ordinary prompt start in the reasoning channel. accepts: all keywords of the encoder. evidence: one line for
    each decision. ends_at_call: a declared call ends an open reasoning channel (--reasoning-ends-at-tool-call).
    variant: of the format, as far as the template tells; answers are written by its canonical form.
    """

    format: FormatSpec | None
    dialect: ReasoningDialect | None
    thinking_switch: ThinkingSwitch | None
    effort_keyword: str | None
    efforts: tuple[str, ...]
    begins_inside: bool
    accepts: frozenset[str]
    needs: TemplateNeeds
    evidence: tuple[str, ...]
    ends_at_call: bool = False
    variant: str | None = None

    def template_kwargs(
        self,
        *,
        thinking: bool | None = None,
        reasoning_effort: str | None = None,
        tool_choice: Any = None,
        response_format: Any = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Keywords for `ChatEncoder.render`: only those that the encoder takes, so that none can be an error.

        A request's own chat_template_kwargs win over its other controls, and these over `defaults` (the server's).
        `enable_thinking` and `thinking` mean the model's switch whatever its name; effort "none" turns thinking off.
        """
        chosen = self._translated(defaults or {})
        if reasoning_effort == "none":
            thinking = False if thinking is None else thinking
        elif reasoning_effort is not None and self.effort_keyword is not None:
            chosen[self.effort_keyword] = self._nearest_effort(reasoning_effort)
        if thinking is not None and self.thinking_switch is not None:
            chosen[self.thinking_switch.keyword] = self.thinking_switch.on if thinking else self.thinking_switch.off
        for keyword, value in (("tool_choice", tool_choice), ("response_format", response_format)):
            if value is not None:
                chosen[keyword] = value
        chosen.update(self._translated(chat_template_kwargs or {}))
        return {key: value for key, value in chosen.items() if key in self.accepts}

    def new_pipeline(
        self,
        tokenizer: Tokenizer,
        rendered_prompt: str,
        tools: Sequence[Tool],
        *,
        stop_strings: Sequence[str] = (),
        include_stop: bool = False,
        suppress_calls: bool = False,
        parallel: bool = True,
        num_earlier_calls: int = 0,
        skip_special_tokens: bool = True,
        continues_text: bool = False,
        min_tokens: int = 0,
    ) -> AnswerPipeline:
        """The pipeline of an answer to this prompt. `tools`: the request's; the rest as ToolCallReader has it.

        continues_text: the prompt ends inside the answer's text.
        """
        shown = self.shown_special_ids(tokenizer)
        stages = TextStages(
            dialect=self.dialect,
            begins_inside=begins_inside(self.dialect, rendered_prompt),
            stop_strings=stop_strings,
            include_stop=include_stop,
            spec=self.format,
            tools=tools,
            suppress_calls=suppress_calls,
            parallel=parallel,
            num_earlier_calls=num_earlier_calls,
            ends_at_call=self.ends_at_call,
        )
        return AnswerPipeline(Detokenizer(tokenizer, skip_special_tokens, continues_text, shown), stages, min_tokens)

    def shown_special_ids(self, tokenizer: Tokenizer) -> frozenset[int]:
        """Special tokens that stay in the text, because a marker of the format or dialect is spelt with them."""
        return marker_token_ids(tokenizer, self.format, self.dialect)

    def _translated(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords, with a foreign name for the thinking switch replaced by the model's."""
        result = dict(kwargs)
        switch = self.thinking_switch
        for alias in SWITCH_ALIASES:
            if alias in self.accepts or switch is None or not isinstance(result.get(alias), bool):
                continue
            result.setdefault(switch.keyword, switch.on if result[alias] else switch.off)
        return result

    def _nearest_effort(self, effort: str) -> str:
        """The level itself, or the closest one that the template takes, the higher of two."""
        if effort in self.efforts or effort not in EFFORTS or not self.efforts:
            return effort
        place = EFFORTS.index(effort)
        return min(self.efforts, key=lambda level: (abs(EFFORTS.index(level) - place), -EFFORTS.index(level)))


def render_probe_prompt(encoder: ChatEncoder, needs: TemplateNeeds | None = None) -> str:
    """A conversation that shows how a template writes tools, a thought, a call and its result; the richest it renders.

    Empty when it renders none.
    """
    needs = needs or probe_needs(encoder)
    thought = probe_call(content=SPOKEN, reasoning_content=THOUGHT)
    called = probe_call()
    texts = [
        try_render(encoder, [_PROBE_USER, *thought, _PROBE_USER, *called], needs, with_tools=True),
        try_render(encoder, [_PROBE_USER, *thought], needs, with_tools=True),
        try_render(encoder, [_PROBE_USER, *called], needs, with_tools=True),
        try_render(encoder, [_PROBE_USER], needs, with_tools=True),
        try_render(encoder, [_PROBE_USER], needs),
    ]
    richest = next((text for text in texts if text is not None and ARGUMENT in text), None)
    return richest or next((text for text in texts if text is not None), "")


def _why_nothing(encoder: ChatEncoder, needs: TemplateNeeds) -> str:
    """What keeps a template from rendering a single user message."""
    try:
        encoder.render(convert_messages([_PROBE_USER], needs), None)
    except ChatTemplateError as error:
        return str(error)
    return "the prompt is empty"


def probe_chat_encoder(
    encoder: ChatEncoder, tool_call_parser: str = "auto", *, reasoning_ends_at_tool_call: bool = False
) -> ChatProfile:
    """Find everything out, and log it. Raises ValueError for an unknown `tool_call_parser`, with the names."""
    forced = None if tool_call_parser == "auto" else get_format(tool_call_parser)
    needs = probe_needs(encoder)
    rendered = render_probe_prompt(encoder, needs)
    if not rendered:
        reason = _why_nothing(encoder, needs)
        raise ChatTemplateError(f"chat template {encoder.name} does not render a single user message: {reason}")
    spec, format_line = _format(forced, rendered, encoder)
    if spec is not None and spec.ids == "wire":
        needs = replace(needs, call_ids="functions")
    if spec is not None:
        passes = any(part.invalid_body == "pass" for part in (*spec.grammars, spec.channels) if part is not None)
        needs = replace(needs, any_arguments=passes)
    detection = _dialect(encoder, needs, rendered)
    dialect = detection.dialect if detection else None
    switch, switch_line = _switch(encoder, needs, dialect)
    keyword, efforts = _efforts(encoder, needs, dialect)
    prompt = try_render(encoder, [_PROBE_USER], needs) or rendered
    inside = begins_inside(dialect, prompt)
    profile = ChatProfile(
        format=spec,
        dialect=dialect,
        thinking_switch=switch,
        effort_keyword=keyword,
        efforts=efforts,
        begins_inside=inside,
        accepts=encoder.accepts,
        needs=needs,
        evidence=(
            format_line,
            _dialect_line(detection),
            switch_line,
            f"answers begin {'inside' if inside else 'outside'} the reasoning channel: prompts end {_tail(prompt)}",
        ),
        ends_at_call=reasoning_ends_at_tool_call,
        variant=None if spec is None else variant_of(spec, rendered),
    )
    for line in profile.evidence:
        logger.info("%s: %s", encoder.name, line)
    return profile


def _format(forced: FormatSpec | None, rendered: str, encoder: ChatEncoder) -> tuple[FormatSpec | None, str]:
    if forced is not None:
        return forced, f"tool-call format {forced.name}: by --tool-call-parser"
    detection = detect_format(rendered)
    if detection is not None:
        return get_format(detection.name), f"tool-call format {detection.name}: {detection.evidence}"
    if PROBE_TOOL["function"]["name"] not in rendered:
        return None, "no tool-call format: the template renders no tools; text is delivered as it is"
    return None, "no tool-call format: none is recognised in the rendered template; text is delivered as it is"


def _dialect(encoder: ChatEncoder, needs: TemplateNeeds, rendered: str) -> DialectDetection | None:
    """From what the template renders, with thinking at its default and switched, and at last from its own text."""
    prompts = [rendered, try_render(encoder, [_PROBE_USER], needs) or ""]
    for alias in SWITCH_ALIASES:
        if alias in encoder.accepts:
            prompts += [
                try_render(encoder, [_PROBE_USER], needs, controls={alias: value}) or "" for value in (True, False)
            ]
    return detect_dialect("\n".join(prompts)) or detect_dialect(encoder.source)


def _dialect_line(detection: DialectDetection | None) -> str:
    if detection is None:
        return "no reasoning dialect: no known marker in the template; all text is the answer"
    return f"reasoning dialect {detection.dialect.name}: the template has {detection.evidence!r}"


def _switch(
    encoder: ChatEncoder, needs: TemplateNeeds, dialect: ReasoningDialect | None
) -> tuple[ThinkingSwitch | None, str]:
    """The first candidate whose two values give different prompts."""
    for switch in dialect.switches if dialect is not None else ():
        if switch.keyword not in encoder.accepts:
            continue
        off = try_render(encoder, [_PROBE_USER], needs, controls={switch.keyword: switch.off})
        on = try_render(encoder, [_PROBE_USER], needs, controls={switch.keyword: switch.on})
        if off is not None and on is not None and off != on:
            line = f"thinking switch {switch.keyword}={switch.off!r}: prompts end {_tail(off)} instead of {_tail(on)}"
            return switch, line
    return None, "no thinking switch: no keyword changes the prompt's end"


def _efforts(
    encoder: ChatEncoder, needs: TemplateNeeds, dialect: ReasoningDialect | None
) -> tuple[str | None, tuple[str, ...]]:
    keywords = dialect.effort_keywords if dialect is not None else EFFORT_KEYWORDS
    keyword = next((name for name in keywords if name in encoder.accepts), None)
    if keyword is None:
        return None, ()
    rendered = {level: try_render(encoder, [_PROBE_USER], needs, controls={keyword: level}) for level in EFFORTS}
    return keyword, tuple(level for level, text in rendered.items() if text is not None)


def _tail(prompt: str) -> str:
    return repr(prompt[-TAIL:])
