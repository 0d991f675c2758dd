# Derived from spec/formats/*.yaml by spec/codegen; edit that and run `make generate`.
"""Wire formats of tool calls: grammar, detection, forms, examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Tag:
    """One spelling of an opening marker, with the closers that end what it opens.

    `open` and `close` are literals with holes: `{name}`, `{key}`, `{type}`, `{is_string}`, `{index}`; `{ws}` is any
    white space. No closer: it opens and closes itself, or whatever comes next ends it.
    """

    open: str
    close: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObjectKeys:
    """The keys of a call that is one JSON object; the first of each tuple is the canonical spelling.

    arguments_required: an object without them is no call. unknown: whether other keys before the arguments are let
    pass, or make it no call.
    """

    name: tuple[str, ...]
    arguments: tuple[str, ...]
    other: tuple[str, ...]
    arguments_required: bool
    unknown: Literal["ignore", "reject"]


@dataclass(frozen=True, slots=True)
class Values:
    """How a tagged value gets its type when the request's schema says nothing, and the literals that it may use.

    default: `string`, or `json` (JSON where it parses, else the text). literals: of `json`, `python`. escapes: of
    attributes, (written, meant), undone in this order.
    """

    default: Literal["string", "json"]
    literals: tuple[str, ...]
    escapes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a region of calls is made of, derived from the forms that models write.

    shape: `tagged` (an argument is a pair of tags) or `json` (the arguments are one JSON object).
    wrappers: around calls; is_bare: a call's own opener opens a region too. calls: around one call; empty where the
    call is one JSON object (object_keys). arguments: around one value. blocks: around arguments that are written as
    one JSON object inside a tagged call. separator: between calls of one wrapper, besides white space.
    at_start: an object at the very start of the answer is a region without an opener. trims_newline: one newline on
    either side of a value is markup. item: elements may nest, and an array's items are called so. envelopes: argument
    names that wrap all arguments when the tool declares no such parameter. infers_name: a call without its own tag is
    named after its parameters. invalid_body: a JSON body that is none: `release` it, or `pass` its bytes on.
    orphans: closers that are markup after a value which the call's own closer has cut.
    """

    shape: Literal["tagged", "json"]
    variants: tuple[str, ...]
    wrappers: tuple[Tag, ...]
    is_bare: bool
    calls: tuple[Tag, ...]
    arguments: tuple[Tag, ...]
    blocks: tuple[Tag, ...]
    object_keys: ObjectKeys | None
    separator: str
    at_start: bool
    trims_newline: bool
    item: str
    values: Values
    envelopes: tuple[str, ...]
    infers_name: bool
    invalid_body: Literal["release", "pass"]
    orphans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Channels:
    """A format whose whole answer is messages in channels.

    A message is `start` (absent from the first one), a header, `message`, a body, one of `ends`. The header is an
    optional recipient, `channel`, the channel's name, an optional recipient, an optional content type. kinds: channel
    name to `content` or `reasoning`; a message in any other channel is dropped. recipient: the spelling of a call's
    recipient, with `{name}`; builtins: recipients that the template declares to the model by itself, `*` for any rest.
    """

    start: str
    channel: str
    message: str
    ends: tuple[str, ...]
    to: str
    constrain: str
    kinds: Mapping[str, Literal["content", "reasoning"]]
    recipient: str
    builtins: tuple[str, ...]
    invalid_body: Literal["release", "pass"]


@dataclass(frozen=True, slots=True)
class Detect:
    """Evidence in what the template renders: all of `all`, one of `any` (if given), none of `none`."""

    order: int
    variant: str | None
    all: tuple[str, ...]
    any: tuple[str, ...]
    none: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which models write calls; the first of a variant is what its template writes.

    section: around `{calls}`. call: one call, around `{arguments}`. argument: one argument, around `{value}`; None
    where `{arguments}` is a JSON object. empty_call: the call when it has no arguments, where that differs. at: `end`
    where nothing can follow, `start` where nothing may precede. requires: of `no_arguments`, `arguments`.
    trims_newline: the newlines around the value are markup, so a value in a form without them can't have its own.
    """

    name: str
    variant: str | None
    section: str
    call: str
    argument: str | None
    call_separator: str
    argument_separator: str
    many_calls: bool
    empty_call: str | None
    at: Literal["anywhere", "start", "end"]
    requires: tuple[str, ...]
    trims_newline: bool


@dataclass(frozen=True, slots=True)
class Writing:
    """How a model of this format writes an answer: what a renderer needs besides the forms.

    content, reasoning: templates around `{text}`; epilogue: may end an answer; part_separator: between the parts of
    an answer (text, thoughts, sections). starts_inside_content: the prompt has opened the first content part.
    values: JSON type to spellings: `raw`, `json`, `python`, `elements`. element, item_key: of nested elements.
    never_in_string: literals that end a raw value. id: the call id on the wire, empty where there is none.
    """

    content: str
    reasoning: str | None
    part_separator: str
    epilogue: str
    starts_inside_content: bool
    values: Mapping[str, tuple[str, ...]]
    element: str
    item_key: str
    never_in_string: tuple[str, ...]
    id: str
    index_base: int


@dataclass(frozen=True, slots=True)
class Example:
    """A text and the calls in it, as (name, arguments in JSON); `content` is what else it says."""

    text: str
    variant: str | None
    calls: tuple[tuple[str, str], ...]
    content: str


@dataclass(frozen=True, slots=True)
class TokenNeeds:
    """What the detokenizer has to keep, so that the markers reach the reader."""

    skip_special_tokens: bool
    spaces_between_special_tokens: bool


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class FormatSpec:
    """A wire format. Everything that reads, writes, detects or documents it comes from here.

    framing: literals dropped wherever they stand outside a region. undeclared: a complete call of a tool that the
    request doesn't declare is released as text, or dropped with its channel. ids: `random`, or `wire`. history_id: a
    pattern that the template demands of ids in earlier turns, empty where it takes any. not_calls: texts that look
    like calls and are none. markers: every literal that the reader looks for outside regions.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    variants: tuple[str, ...]
    detect: tuple[Detect, ...]
    dialects: Mapping[str | None, tuple[str, ...]]
    tokens: TokenNeeds
    framing: tuple[str, ...]
    undeclared: Literal["release", "drop"]
    ids: Literal["random", "wire"]
    history_id: str
    grammars: tuple[Grammar, ...]
    channels: Channels | None
    forms: tuple[Form, ...]
    writings: Mapping[str | None, Writing]
    examples: tuple[Example, ...]
    not_calls: tuple[str, ...]
    markers: tuple[str, ...]

    @property
    def max_hold(self) -> int:
        """Characters that may be held outside regions: the longest marker but one."""
        return max((len(marker) for marker in self.markers), default=1) - 1

    @property
    def has_start_forms(self) -> bool:
        """Whether a call may stand at the start of an answer without any marker."""
        return any(form.at == "start" for form in self.forms)

    def forms_of(self, variant: str | None) -> tuple[Form, ...]:
        """The forms of a variant, the canonical one first."""
        return tuple(form for form in self.forms if form.variant in (None, variant))

    def writing_of(self, variant: str | None) -> Writing:
        """How models of a variant write."""
        return self.writings.get(variant) or self.writings[None]

    def dialects_of(self, variant: str | None = None) -> tuple[str, ...]:
        """Names of the reasoning dialects that go with a variant; without one, of all variants."""
        if variant is None:
            return tuple(dict.fromkeys(name for names in self.dialects.values() for name in names))
        return self.dialects.get(variant) or self.dialects.get(None) or ()


FORMATS: dict[str, FormatSpec] = {
    "qwen": FormatSpec(
        name="qwen",
        title="Qwen3-Coder and Qwen3.5 XML",
        aliases=(
            "qwen3_coder",
            "qwen3_xml",
            "qwen3_5",
        ),
        variants=(),
        detect=(
            Detect(
                order=60,
                variant=None,
                all=(
                    "<function=",
                    "<parameter=",
                ),
                any=(),
                none=(),
            ),
        ),
        dialects={None: ("think",)},
        tokens=TokenNeeds(skip_special_tokens=False, spaces_between_special_tokens=True),
        framing=(),
        undeclared="release",
        ids="random",
        history_id="",
        grammars=(
            Grammar(
                shape="tagged",
                variants=(),
                wrappers=(Tag(open="<tool_call>", close=("</tool_call>",)),),
                is_bare=True,
                calls=(Tag(open="<function={name}>", close=("</function>",)),),
                arguments=(Tag(open="<parameter={key}>", close=("</parameter>",)),),
                blocks=(),
                object_keys=None,
                separator="",
                at_start=False,
                trims_newline=True,
                item="",
                values=Values(
                    default="string",
                    literals=(
                        "json",
                        "python",
                    ),
                    escapes=(),
                ),
                envelopes=(),
                infers_name=False,
                invalid_body="release",
                orphans=(),
            ),
        ),
        channels=None,
        forms=(
            Form(
                name="canonical",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call="<function={name}>\n{arguments}</function>",
                argument="<parameter={key}>\n{value}\n</parameter>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=True,
            ),
            Form(
                name="one_line",
                variant=None,
                section="<tool_call>{calls}</tool_call>",
                call="<function={name}>{arguments}</function>",
                argument="<parameter={key}>{value}</parameter>",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=True,
            ),
            Form(
                name="many_in_one_wrapper",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call="<function={name}>\n{arguments}</function>",
                argument="<parameter={key}>\n{value}\n</parameter>\n",
                call_separator="\n",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=True,
            ),
            Form(
                name="no_wrapper",
                variant=None,
                section="{calls}",
                call="<function={name}>\n{arguments}</function>",
                argument="<parameter={key}>\n{value}\n</parameter>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=True,
            ),
            Form(
                name="no_opening_wrapper",
                variant=None,
                section="{calls}\n</tool_call>",
                call="<function={name}>\n{arguments}</function>",
                argument="<parameter={key}>\n{value}\n</parameter>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=True,
            ),
            Form(
                name="no_argument_closers",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call="<function={name}>\n{arguments}</function>",
                argument="<parameter={key}>\n{value}\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=("arguments",),
                trims_newline=True,
            ),
            Form(
                name="unterminated",
                variant=None,
                section="<tool_call>\n{calls}",
                call="<function={name}>\n{arguments}</function>",
                argument="<parameter={key}>\n{value}\n</parameter>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=True,
            ),
        ),
        writings={
            None: Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": (
                        "json",
                        "python",
                    ),
                    "null": (
                        "json",
                        "python",
                    ),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</parameter>",
                    "</function>",
                    "<parameter=",
                ),
                id="",
                index_base=0,
            )
        },
        examples=(
            Example(
                text="Let me see.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
                variant=None,
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo", "days": 2}',
                    ),
                ),
                content="Let me see.\n\n",
            ),
            Example(
                text="<function=get_weather><parameter=city>\n\nOslo\n\n</parameter></function>",
                variant=None,
                calls=(
                    (
                        "get_weather",
                        '{"city": "\\nOslo\\n"}',
                    ),
                ),
                content="",
            ),
        ),
        not_calls=(
            "Write <tool_call> before the function.",
            "A call is <function=NAME> with <parameter=KEY> in it.",
            "`<tool_call>\n<function=` opens one.",
        ),
        markers=(
            "<tool_call>",
            "<function=",
        ),
    ),
    "hermes": FormatSpec(
        name="hermes",
        title="Hermes JSON (Qwen2.5, Qwen3, Hermes)",
        aliases=(
            "qwen2_5",
            "qwen3",
        ),
        variants=(),
        detect=(
            Detect(
                order=70,
                variant=None,
                all=(),
                any=(
                    '{"name": <function-name>, "arguments": <args-json-object>}',
                    '{"name": <function-name>, "arguments": <args-dict>}',
                ),
                none=(),
            ),
        ),
        dialects={None: ("think",)},
        tokens=TokenNeeds(skip_special_tokens=False, spaces_between_special_tokens=True),
        framing=(),
        undeclared="release",
        ids="random",
        history_id="",
        grammars=(
            Grammar(
                shape="json",
                variants=(),
                wrappers=(Tag(open="<tool_call>", close=("</tool_call>",)),),
                is_bare=False,
                calls=(),
                arguments=(),
                blocks=(),
                object_keys=ObjectKeys(
                    name=("name",),
                    arguments=(
                        "arguments",
                        "parameters",
                    ),
                    other=(
                        "type",
                        "id",
                    ),
                    arguments_required=False,
                    unknown="ignore",
                ),
                separator="",
                at_start=False,
                trims_newline=False,
                item="",
                values=Values(default="json", literals=("json",), escapes=()),
                envelopes=(),
                infers_name=False,
                invalid_body="release",
                orphans=(),
            ),
        ),
        channels=None,
        forms=(
            Form(
                name="canonical",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call='{"name": {name|json}, "arguments": {arguments}}',
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="one_line",
                variant=None,
                section="<tool_call>{calls}</tool_call>",
                call='{"name": {name|json}, "arguments": {arguments}}',
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="arguments_first",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call='{"arguments": {arguments}, "name": {name|json}}',
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="many_in_one_wrapper",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call='{"name": {name|json}, "arguments": {arguments}}',
                argument=None,
                call_separator="\n",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="parameters_key",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call='{"name": {name|json}, "parameters": {arguments}}',
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="extra_keys",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call='{"type": "function", "id": "x1", "name": {name|json}, "arguments": {arguments}}',
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_arguments_key",
                variant=None,
                section="<tool_call>\n{calls}\n</tool_call>",
                call='{"name": {name|json}, "arguments": {arguments}}',
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call='{"name": {name|json}}',
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="unterminated",
                variant=None,
                section="<tool_call>\n{calls}",
                call='{"name": {name|json}, "arguments": {arguments}}',
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
        ),
        writings={
            None: Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("json",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(),
                id="",
                index_base=0,
            )
        },
        examples=(
            Example(
                text='Sure.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>',
                variant=None,
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo", "days": 2}',
                    ),
                ),
                content="Sure.\n",
            ),
            Example(
                text='<tool_call>{"name": "note", "arguments": {"text": "ends with </tool_call> here"}}</tool_call>',
                variant=None,
                calls=(
                    (
                        "note",
                        '{"text": "ends with </tool_call> here"}',
                    ),
                ),
                content="",
            ),
        ),
        not_calls=(
            "It opens with <tool_call> and a JSON object.",
            "Write <tool_call> {'name': 'x'} </tool_call> with double quotes.",
            'Put {"name": ..., "arguments": ...} between <tool_call> and </tool_call>.',
        ),
        markers=("<tool_call>",),
    ),
}
