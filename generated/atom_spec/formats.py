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
    "dsml": FormatSpec(
        name="dsml",
        title="DeepSeek V3.2 and V4 markup",
        aliases=(
            "deepseek_v32",
            "deepseek_v4",
        ),
        variants=(
            "v4",
            "v32",
            "v41",
        ),
        detect=(
            Detect(
                order=1,
                variant="v41",
                all=(),
                any=(
                    "<｜DSML｜ calls>",
                    "<｜DSML｜ invoke",
                ),
                none=(),
            ),
            Detect(
                order=2,
                variant="v32",
                all=(
                    "｜DSML｜",
                    "function_calls>",
                ),
                any=(),
                none=(),
            ),
            Detect(order=3, variant="v4", all=("｜DSML｜",), any=(), none=()),
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
                variants=(
                    "v4",
                    "v32",
                    "v41",
                ),
                wrappers=(
                    Tag(open="<｜DSML｜tool_calls>", close=("</｜DSML｜tool_calls>",)),
                    Tag(open="<｜DSML｜toolcalls>", close=("</｜DSML｜toolcalls>",)),
                    Tag(open="<｜DSML｜tool_call>", close=("</｜DSML｜tool_call>",)),
                    Tag(open="<｜DSML｜tool>", close=("</｜DSML｜tool>",)),
                    Tag(open="<tool_calls>", close=("</tool_calls>",)),
                    Tag(open="<function_calls>", close=("</function_calls>",)),
                    Tag(open="<｜DSML｜function_calls>", close=("</｜DSML｜function_calls>",)),
                    Tag(open="<｜DSML｜ calls>", close=("</｜DSML｜ calls>",)),
                ),
                is_bare=True,
                calls=(
                    Tag(open='<｜DSML｜invoke name="{name}">', close=("</｜DSML｜invoke>",)),
                    Tag(
                        open='<invoke name="{name}">',
                        close=(
                            "</invoke>",
                            "</｜DSML｜invoke>",
                        ),
                    ),
                    Tag(open='<｜DSML｜ invoke name="{name}">', close=("</｜DSML｜ invoke>",)),
                    Tag(open='<｜DSML｜invoke name="{name}"/>', close=()),
                    Tag(open='<invoke name="{name}"/>', close=()),
                    Tag(open='<｜DSML｜ invoke name="{name}"/>', close=()),
                ),
                arguments=(
                    Tag(open='<｜DSML｜parameter name="{key}" string="{is_string}">', close=("</｜DSML｜parameter>",)),
                    Tag(open='<｜DSML｜parameter name="{key}">', close=("</｜DSML｜parameter>",)),
                    Tag(
                        open='<parameter name="{key}" string="{is_string}">',
                        close=(
                            "</｜DSML｜parameter>",
                            "</parameter>",
                        ),
                    ),
                    Tag(
                        open='<parameter name="{key}">',
                        close=(
                            "</｜DSML｜parameter>",
                            "</parameter>",
                        ),
                    ),
                    Tag(
                        open='<｜DSML｜ parameter name="{key}" string="{is_string}">', close=("</｜DSML｜ parameter>",)
                    ),
                ),
                blocks=(
                    Tag(open="", close=()),
                    Tag(open='<｜DSML｜parameter name="arguments" string="false">', close=("</｜DSML｜parameter>",)),
                ),
                object_keys=None,
                separator="",
                at_start=False,
                trims_newline=False,
                item="",
                values=Values(default="json", literals=("json",), escapes=()),
                envelopes=(
                    "arguments",
                    "input",
                ),
                infers_name=True,
                invalid_body="release",
                orphans=("</｜DSML｜parameter>",),
            ),
        ),
        channels=None,
        forms=(
            Form(
                name="canonical",
                variant="v4",
                section="<｜DSML｜tool_calls>\n{calls}\n</｜DSML｜tool_calls>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_wrapper",
                variant="v4",
                section="{calls}",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="misspelt_wrapper",
                variant="v4",
                section="<｜DSML｜toolcalls>\n{calls}\n</｜DSML｜toolcalls>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="singular_wrapper",
                variant="v4",
                section="<｜DSML｜tool_call>\n{calls}\n</｜DSML｜tool_call>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="short_wrapper",
                variant="v4",
                section="<｜DSML｜tool>\n{calls}\n</｜DSML｜tool>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="unterminated",
                variant="v4",
                section="<｜DSML｜tool_calls>\n{calls}",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="self_closing",
                variant="v4",
                section="<｜DSML｜tool_calls>\n{calls}\n</｜DSML｜tool_calls>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call='<｜DSML｜invoke name="{name}"/>',
                at="anywhere",
                requires=("no_arguments",),
                trims_newline=False,
            ),
            Form(
                name="direct_json",
                variant="v4",
                section="<｜DSML｜tool_calls>\n{calls}\n</｜DSML｜tool_calls>",
                call='<｜DSML｜invoke name="{name}">\n{json}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="envelope",
                variant="v4",
                section="<｜DSML｜tool_calls>\n{calls}\n</｜DSML｜tool_calls>",
                call='<｜DSML｜invoke name="{name}">\n<｜DSML｜parameter name="arguments" string="false">{json}</｜DSML｜parameter>\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=("arguments",),
                trims_newline=False,
            ),
            Form(
                name="no_type",
                variant="v4",
                section="<｜DSML｜tool_calls>\n{calls}\n</｜DSML｜tool_calls>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=("typed_by_schema",),
                trims_newline=False,
            ),
            Form(
                name="opener_lost_marker",
                variant="v4",
                section="<｜DSML｜tool_calls>\n{calls}\n</｜DSML｜tool_calls>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="opener_lost_marker_and_type",
                variant="v4",
                section="<｜DSML｜tool_calls>\n{calls}\n</｜DSML｜tool_calls>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<parameter name="{key}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=("typed_by_schema",),
                trims_newline=False,
            ),
            Form(
                name="markers_lost",
                variant="v4",
                section="<tool_calls>\n{calls}\n</tool_calls>",
                call='<invoke name="{name}">\n{arguments}\n</invoke>',
                argument='<parameter name="{key}" string="{is_string}">{value}</parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="markers_lost_no_type",
                variant="v4",
                section="<tool_calls>\n{calls}\n</tool_calls>",
                call='<invoke name="{name}">\n{arguments}\n</invoke>',
                argument='<parameter name="{key}">{value}</parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=("typed_by_schema",),
                trims_newline=False,
            ),
            Form(
                name="markers_and_wrapper_lost",
                variant="v4",
                section="{calls}",
                call='<invoke name="{name}">\n{arguments}\n</invoke>',
                argument='<parameter name="{key}" string="{is_string}">{value}</parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=False,
                empty_call='<invoke name="{name}"/>',
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="invoke_closer_kept_its_marker",
                variant="v4",
                section="<function_calls>\n{calls}\n</function_calls>",
                call='<invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="canonical",
                variant="v32",
                section="<｜DSML｜function_calls>\n{calls}\n</｜DSML｜function_calls>",
                call='<｜DSML｜invoke name="{name}">\n{arguments}\n</｜DSML｜invoke>',
                argument='<｜DSML｜parameter name="{key}" string="{is_string}">{value}</｜DSML｜parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="canonical",
                variant="v41",
                section="<｜DSML｜ calls>\n{calls}\n</｜DSML｜ calls>",
                call='<｜DSML｜ invoke name="{name}">\n{arguments}\n</｜DSML｜ invoke>',
                argument='<｜DSML｜ parameter name="{key}" string="{is_string}">{value}</｜DSML｜ parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="self_closing",
                variant="v41",
                section="<｜DSML｜ calls>\n{calls}\n</｜DSML｜ calls>",
                call='<｜DSML｜ invoke name="{name}">\n{arguments}\n</｜DSML｜ invoke>',
                argument='<｜DSML｜ parameter name="{key}" string="{is_string}">{value}</｜DSML｜ parameter>',
                call_separator="\n",
                argument_separator="\n",
                many_calls=False,
                empty_call='<｜DSML｜ invoke name="{name}"/>',
                at="anywhere",
                requires=("no_arguments",),
                trims_newline=False,
            ),
        ),
        writings={
            "v4": Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</｜DSML｜parameter>",
                    "</parameter>",
                    "</｜DSML｜ parameter>",
                    "</｜DSML｜invoke>",
                    "</invoke>",
                    "</｜DSML｜ invoke>",
                    '<｜DSML｜parameter name="',
                    '<parameter name="',
                    '<｜DSML｜ parameter name="',
                ),
                id="",
                index_base=0,
            ),
            "v32": Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</｜DSML｜parameter>",
                    "</parameter>",
                    "</｜DSML｜ parameter>",
                    "</｜DSML｜invoke>",
                    "</invoke>",
                    "</｜DSML｜ invoke>",
                    '<｜DSML｜parameter name="',
                    '<parameter name="',
                    '<｜DSML｜ parameter name="',
                ),
                id="",
                index_base=0,
            ),
            "v41": Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</｜DSML｜parameter>",
                    "</parameter>",
                    "</｜DSML｜ parameter>",
                    "</｜DSML｜invoke>",
                    "</invoke>",
                    "</｜DSML｜ invoke>",
                    '<｜DSML｜parameter name="',
                    '<parameter name="',
                    '<｜DSML｜ parameter name="',
                ),
                id="",
                index_base=0,
            ),
            None: Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</｜DSML｜parameter>",
                    "</parameter>",
                    "</｜DSML｜ parameter>",
                    "</｜DSML｜invoke>",
                    "</invoke>",
                    "</｜DSML｜ invoke>",
                    '<｜DSML｜parameter name="',
                    '<parameter name="',
                    '<｜DSML｜ parameter name="',
                ),
                id="",
                index_base=0,
            ),
        },
        examples=(
            Example(
                text='Let me see.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
                variant="v4",
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo", "days": 2}',
                    ),
                ),
                content="Let me see.\n\n",
            ),
        ),
        not_calls=(
            "The block opens with <｜DSML｜tool_calls> on its own line.",
            'Tags look like <｜DSML｜invoke name="NAME"> or so.',
            "<｜DSML｜ alone is prose.",
        ),
        markers=(
            "<｜DSML｜tool_calls>",
            "<｜DSML｜toolcalls>",
            "<｜DSML｜tool_call>",
            "<｜DSML｜tool>",
            "<tool_calls>",
            "<function_calls>",
            "<｜DSML｜function_calls>",
            "<｜DSML｜ calls>",
            '<｜DSML｜invoke name="',
            '<invoke name="',
            '<｜DSML｜ invoke name="',
        ),
    ),
    "kimi_k3": FormatSpec(
        name="kimi_k3",
        title="Kimi-K3 channels",
        aliases=(),
        variants=(),
        detect=(
            Detect(
                order=10,
                variant=None,
                all=(
                    "<|open|>",
                    "<|close|>",
                    "<|sep|>",
                ),
                any=(),
                none=(),
            ),
        ),
        dialects={None: ("k3",)},
        tokens=TokenNeeds(skip_special_tokens=False, spaces_between_special_tokens=False),
        framing=(
            "<|open|>response<|sep|>",
            "<|close|>response<|sep|>",
            '<|open|>message role="assistant"<|sep|>',
            "<|close|>message<|sep|>",
            "<|open|>think<|sep|>",
            "<|close|>think<|sep|>",
            "<|close|>tools<|sep|>",
            "<|end_of_msg|>",
        ),
        undeclared="drop",
        ids="random",
        history_id="",
        grammars=(
            Grammar(
                shape="tagged",
                variants=(),
                wrappers=(Tag(open="<|open|>tools<|sep|>", close=("<|close|>tools<|sep|>",)),),
                is_bare=True,
                calls=(
                    Tag(
                        open='<|open|>call tool="{name|attribute}" index="{index}"<|sep|>',
                        close=(
                            "<|close|>call<|sep|>",
                            "<|close|>call",
                        ),
                    ),
                    Tag(open='<|open|>call tool="{name|attribute}"<|sep|>', close=("<|close|>call<|sep|>",)),
                ),
                arguments=(
                    Tag(
                        open='<|open|>argument key="{key|attribute}" type="{type}"<|sep|>',
                        close=("<|close|>argument<|sep|>",),
                    ),
                    Tag(open='<|open|>argument key="{key|attribute}"<|sep|>', close=("<|close|>argument<|sep|>",)),
                ),
                blocks=(Tag(open='<|open|>json type="object"<|sep|>', close=("<|close|>json<|sep|>",)),),
                object_keys=None,
                separator="",
                at_start=False,
                trims_newline=False,
                item="",
                values=Values(
                    default="string",
                    literals=("json",),
                    escapes=(
                        (
                            "&quot;",
                            '"',
                        ),
                        (
                            "&amp;",
                            "&",
                        ),
                    ),
                ),
                envelopes=(),
                infers_name=False,
                invalid_body="release",
                orphans=("<|close|>argument<|sep|>",),
            ),
        ),
        channels=None,
        forms=(
            Form(
                name="canonical",
                variant=None,
                section="<|open|>tools<|sep|>{calls}<|close|>tools<|sep|>",
                call='<|open|>call tool="{name|attribute}" index="{index}"<|sep|>{arguments}<|close|>call<|sep|>',
                argument='<|open|>argument key="{key|attribute}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_index",
                variant=None,
                section="<|open|>tools<|sep|>{calls}<|close|>tools<|sep|>",
                call='<|open|>call tool="{name|attribute}"<|sep|>{arguments}<|close|>call<|sep|>',
                argument='<|open|>argument key="{key|attribute}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="json_block",
                variant=None,
                section="<|open|>tools<|sep|>{calls}<|close|>tools<|sep|>",
                call='<|open|>call tool="{name|attribute}" index="{index}"<|sep|><|open|>json type="object"<|sep|>{json}<|close|>json<|sep|><|close|>call<|sep|>',
                argument='<|open|>argument key="{key|attribute}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_tools_channel",
                variant=None,
                section="{calls}",
                call='<|open|>call tool="{name|attribute}" index="{index}"<|sep|>{arguments}<|close|>call<|sep|>',
                argument='<|open|>argument key="{key|attribute}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="unterminated",
                variant=None,
                section="<|open|>tools<|sep|>{calls}",
                call='<|open|>call tool="{name|attribute}" index="{index}"<|sep|>{arguments}<|close|>call<|sep|>',
                argument='<|open|>argument key="{key|attribute}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="closer_cut",
                variant=None,
                section="<|open|>tools<|sep|>{calls}",
                call='<|open|>call tool="{name|attribute}" index="{index}"<|sep|>{arguments}<|close|>call',
                argument='<|open|>argument key="{key|attribute}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_type",
                variant=None,
                section="<|open|>tools<|sep|>{calls}<|close|>tools<|sep|>",
                call='<|open|>call tool="{name|attribute}" index="{index}"<|sep|>{arguments}<|close|>call<|sep|>',
                argument='<|open|>argument key="{key|attribute}"<|sep|>{value}<|close|>argument<|sep|>',
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=("typed_by_schema",),
                trims_newline=False,
            ),
        ),
        writings={
            None: Writing(
                content="<|open|>response<|sep|>{text}<|close|>response<|sep|>",
                reasoning=None,
                part_separator="",
                epilogue="<|close|>message<|sep|><|end_of_msg|>",
                starts_inside_content=True,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "<|close|>argument<|sep|>",
                    "<|close|>call<|sep|>",
                    "<|close|>call",
                    '<|open|>argument key="',
                ),
                id="",
                index_base=1,
            )
        },
        examples=(
            Example(
                text='Sure.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>',
                variant=None,
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo"}',
                    ),
                ),
                content="Sure.",
            ),
        ),
        not_calls=(
            "A tools channel opens with <|open|>tools<|sep|> and holds calls.",
            "Write <|open|>call with a name.",
        ),
        markers=(
            "<|open|>tools<|sep|>",
            '<|open|>call tool="',
            "<|open|>response<|sep|>",
            "<|close|>response<|sep|>",
            '<|open|>message role="assistant"<|sep|>',
            "<|close|>message<|sep|>",
            "<|open|>think<|sep|>",
            "<|close|>think<|sep|>",
            "<|close|>tools<|sep|>",
            "<|end_of_msg|>",
        ),
    ),
    "kimi": FormatSpec(
        name="kimi",
        title="Kimi-K2",
        aliases=("kimi_k2",),
        variants=(),
        detect=(Detect(order=20, variant=None, all=("<|tool_calls_section_begin|>",), any=(), none=()),),
        dialects={None: ("think",)},
        tokens=TokenNeeds(skip_special_tokens=False, spaces_between_special_tokens=True),
        framing=(),
        undeclared="release",
        ids="wire",
        history_id="",
        grammars=(
            Grammar(
                shape="json",
                variants=(),
                wrappers=(
                    Tag(open="<|tool_calls_section_begin|>", close=("<|tool_calls_section_end|>",)),
                    Tag(open="<|tool_call_section_begin|>", close=("<|tool_call_section_end|>",)),
                ),
                is_bare=True,
                calls=(
                    Tag(
                        open="<|tool_call_begin|>{ws}functions.{name}:{index}{ws}<|tool_call_argument_begin|>",
                        close=("<|tool_call_end|>",),
                    ),
                    Tag(
                        open="<|tool_call_begin|> functions.{name}:{index} <|tool_call_argument_begin|>",
                        close=("<|tool_call_end|>",),
                    ),
                    Tag(
                        open="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>",
                        close=("<|tool_call_end|>",),
                    ),
                    Tag(
                        open="<|tool_call_begin|>{ws}{name}:{index}{ws}<|tool_call_argument_begin|>",
                        close=("<|tool_call_end|>",),
                    ),
                    Tag(
                        open="<|tool_call_begin|>{ws}functions.{name}{ws}<|tool_call_argument_begin|>",
                        close=("<|tool_call_end|>",),
                    ),
                    Tag(
                        open="<|tool_call_begin|>{ws}{name}{ws}<|tool_call_argument_begin|>",
                        close=("<|tool_call_end|>",),
                    ),
                ),
                arguments=(),
                blocks=(),
                object_keys=None,
                separator="",
                at_start=False,
                trims_newline=False,
                item="",
                values=Values(default="json", literals=("json",), escapes=()),
                envelopes=(),
                infers_name=False,
                invalid_body="pass",
                orphans=(),
            ),
        ),
        channels=None,
        forms=(
            Form(
                name="canonical",
                variant=None,
                section="<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>",
                call="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="spaces",
                variant=None,
                section="<|tool_calls_section_begin|> {calls} <|tool_calls_section_end|>",
                call="<|tool_call_begin|> functions.{name}:{index} <|tool_call_argument_begin|> {arguments} <|tool_call_end|>",
                argument=None,
                call_separator=" ",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="lines",
                variant=None,
                section="<|tool_calls_section_begin|>\n{calls}\n<|tool_calls_section_end|>",
                call="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
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
                name="empty_body",
                variant=None,
                section="<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>",
                call="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|><|tool_call_end|>",
                at="anywhere",
                requires=("no_arguments",),
                trims_newline=False,
            ),
            Form(
                name="no_prefix",
                variant=None,
                section="<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>",
                call="<|tool_call_begin|>{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
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
                name="no_index",
                variant=None,
                section="<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>",
                call="<|tool_call_begin|>functions.{name}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
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
                name="name_only",
                variant=None,
                section="<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>",
                call="<|tool_call_begin|>{name}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
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
                name="singular",
                variant=None,
                section="<|tool_call_section_begin|>{calls}<|tool_call_section_end|>",
                call="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_section",
                variant=None,
                section="{calls}",
                call="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
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
                name="no_section_end",
                variant=None,
                section="<|tool_calls_section_begin|>{calls}",
                call="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=True,
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
                id="functions.{name}:{index}",
                index_base=0,
            )
        },
        examples=(
            Example(
                text='Asking.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo", "days": 2}<|tool_call_end|><|tool_calls_section_end|>',
                variant=None,
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo", "days": 2}',
                    ),
                ),
                content="Asking.",
            ),
        ),
        not_calls=(
            "A section opens with <|tool_calls_section_begin|> and closes later.",
            "Nothing.<|tool_calls_section_begin|><|tool_calls_section_end|>",
            "<|tool_calls_section_begin|><|tool_call_begin|>no header here<|tool_call_end|><|tool_calls_section_end|>",
        ),
        markers=(
            "<|tool_calls_section_begin|>",
            "<|tool_call_section_begin|>",
            "<|tool_call_begin|>",
            "<|tool_call_begin|> functions.",
            "<|tool_call_begin|>functions.",
        ),
    ),
    "deepseek_v3": FormatSpec(
        name="deepseek_v3",
        title="DeepSeek R1, V3 and V3.1",
        aliases=(
            "deepseek_r1",
            "deepseek_v31",
        ),
        variants=(
            "r1",
            "v31",
        ),
        detect=(
            Detect(
                order=30,
                variant="r1",
                all=(
                    "<｜tool▁calls▁begin｜>",
                    "<｜tool▁sep｜>",
                    "```json",
                ),
                any=(),
                none=(),
            ),
            Detect(
                order=31,
                variant="v31",
                all=(),
                any=(
                    "<｜tool▁calls▁begin｜>",
                    "<｜tool▁call▁begin｜>",
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
                variants=(
                    "r1",
                    "v31",
                ),
                wrappers=(Tag(open="<｜tool▁calls▁begin｜>", close=("<｜tool▁calls▁end｜>",)),),
                is_bare=True,
                calls=(
                    Tag(
                        open="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{ws}{name}{ws}```json",
                        close=(
                            "```{ws}<｜tool▁call▁end｜>",
                            "```",
                        ),
                    ),
                    Tag(open="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{ws}{name}", close=("<｜tool▁call▁end｜>",)),
                    Tag(open="<｜tool▁call▁begin｜>{ws}{name}{ws}<｜tool▁sep｜>", close=("<｜tool▁call▁end｜>",)),
                ),
                arguments=(),
                blocks=(),
                object_keys=None,
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
                variant="r1",
                section="<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜>",
                call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}```json\n{arguments}\n```<｜tool▁call▁end｜>",
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
                name="lines",
                variant="r1",
                section="<｜tool▁calls▁begin｜>\n{calls}\n<｜tool▁calls▁end｜>",
                call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}```json\n{arguments}\n```<｜tool▁call▁end｜>",
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
                name="no_fence",
                variant="r1",
                section="<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜>",
                call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n{arguments}<｜tool▁call▁end｜>",
                argument=None,
                call_separator="\n",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_call_end",
                variant="r1",
                section="<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜>",
                call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}```json\n{arguments}\n```",
                argument=None,
                call_separator="\n",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_section_end",
                variant="r1",
                section="<｜tool▁calls▁begin｜>{calls}",
                call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}```json\n{arguments}\n```<｜tool▁call▁end｜>",
                argument=None,
                call_separator="\n",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_section",
                variant="r1",
                section="{calls}",
                call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}```json\n{arguments}\n```<｜tool▁call▁end｜>",
                argument=None,
                call_separator="\n",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="canonical",
                variant="v31",
                section="<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜>",
                call="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="spaces",
                variant="v31",
                section="<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜>",
                call="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜> {arguments} <｜tool▁call▁end｜>",
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
                name="no_section_end",
                variant="v31",
                section="<｜tool▁calls▁begin｜>{calls}",
                call="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
        ),
        writings={
            "r1": Writing(
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
            ),
            "v31": Writing(
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
            ),
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
            ),
        },
        examples=(
            Example(
                text='Ok.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Oslo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
                variant="r1",
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo"}',
                    ),
                ),
                content="Ok.",
            ),
            Example(
                text='<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
                variant="v31",
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo"}',
                    ),
                ),
                content="",
            ),
        ),
        not_calls=(
            "Calls stand between <｜tool▁calls▁begin｜> and its end.",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>no separator<｜tool▁call▁end｜>",
            "<|tool_calls_begin|> in ASCII is no marker.",
        ),
        markers=(
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
            "<｜tool▁call▁begin｜>",
        ),
    ),
    "glm": FormatSpec(
        name="glm",
        title="GLM-4.5 to GLM-5",
        aliases=(
            "glm45",
            "glm47",
        ),
        variants=(
            "45",
            "47",
        ),
        detect=(
            Detect(
                order=40,
                variant="45",
                all=(
                    "<arg_key>",
                    "<arg_value>",
                    "</arg_key>\n<arg_value>",
                ),
                any=(),
                none=(),
            ),
            Detect(
                order=41,
                variant="47",
                all=(
                    "<arg_key>",
                    "<arg_value>",
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
                variants=(
                    "45",
                    "47",
                ),
                wrappers=(),
                is_bare=True,
                calls=(
                    Tag(open="<tool_call>{ws}{name}", close=("</tool_call>",)),
                    Tag(open="<tool_call>\n {name}", close=("</tool_call>",)),
                    Tag(open="<tool_call>{name}", close=()),
                ),
                arguments=(
                    Tag(open="<arg_key>{key}</arg_key>{ws}<arg_value>", close=("</arg_value>",)),
                    Tag(open="<arg_key>{key}</arg_key>\n<arg_value>", close=("</arg_value>",)),
                    Tag(open="<arg_key>{key}</arg_key><arg_value>", close=()),
                ),
                blocks=(),
                object_keys=None,
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
                variant="45",
                section="{calls}",
                call="<tool_call>{name}\n{arguments}</tool_call>",
                argument="<arg_key>{key}</arg_key><arg_value>{value}</arg_value>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="unterminated",
                variant="45",
                section="{calls}",
                call="<tool_call>{name}\n{arguments}",
                argument="<arg_key>{key}</arg_key><arg_value>{value}</arg_value>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="end",
                requires=("arguments",),
                trims_newline=False,
            ),
            Form(
                name="spaced_name",
                variant="45",
                section="{calls}",
                call="<tool_call>\n {name} \n{arguments}</tool_call>",
                argument="<arg_key>{key}</arg_key><arg_value>{value}</arg_value>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="lines",
                variant="45",
                section="{calls}",
                call="<tool_call>{name}\n{arguments}</tool_call>",
                argument="<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="canonical",
                variant="47",
                section="{calls}",
                call="<tool_call>{name}{arguments}</tool_call>",
                argument="<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_value_closers",
                variant="47",
                section="{calls}",
                call="<tool_call>{name}{arguments}</tool_call>",
                argument="<arg_key>{key}</arg_key><arg_value>{value}",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=("arguments",),
                trims_newline=False,
            ),
            Form(
                name="unterminated",
                variant="47",
                section="{calls}",
                call="<tool_call>{name}{arguments}",
                argument="<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="end",
                requires=("arguments",),
                trims_newline=False,
            ),
        ),
        writings={
            "45": Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</arg_value>",
                    "</tool_call>",
                    "<arg_key>",
                ),
                id="",
                index_base=0,
            ),
            "47": Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</arg_value>",
                    "</tool_call>",
                    "<arg_key>",
                ),
                id="",
                index_base=0,
            ),
            None: Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</arg_value>",
                    "</tool_call>",
                    "<arg_key>",
                ),
                id="",
                index_base=0,
            ),
        },
        examples=(
            Example(
                text="One moment.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
                variant="45",
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo", "days": 2}',
                    ),
                ),
                content="One moment.\n",
            ),
            Example(
                text="<tool_call>current_time</tool_call>",
                variant="47",
                calls=(
                    (
                        "current_time",
                        "{}",
                    ),
                ),
                content="",
            ),
        ),
        not_calls=(
            "GLM opens with <tool_call> and a name.",
            "`<tool_call>name` comes first, then the pairs.",
            "It puts <arg_key>KEY</arg_key> before <arg_value>VALUE</arg_value>.",
        ),
        markers=(
            "<tool_call>",
            "<tool_call>\n ",
        ),
    ),
    "minimax": FormatSpec(
        name="minimax",
        title="MiniMax-M2 and MiniMax-M3",
        aliases=(
            "minimax_m2",
            "minimax_m3",
        ),
        variants=(
            "m2",
            "m3",
        ),
        detect=(
            Detect(order=50, variant="m3", all=("]<]minimax[>[",), any=(), none=()),
            Detect(order=51, variant="m2", all=("<minimax:tool_call>",), any=(), none=()),
        ),
        dialects={"m2": ("think",), "m3": ("mm_think",)},
        tokens=TokenNeeds(skip_special_tokens=False, spaces_between_special_tokens=True),
        framing=(),
        undeclared="release",
        ids="random",
        history_id="",
        grammars=(
            Grammar(
                shape="tagged",
                variants=("m2",),
                wrappers=(Tag(open="<minimax:tool_call>", close=("</minimax:tool_call>",)),),
                is_bare=False,
                calls=(
                    Tag(open='<invoke name="{name}">', close=("</invoke>",)),
                    Tag(open="<invoke name='{name}'>", close=("</invoke>",)),
                    Tag(open="<invoke name={name}>", close=("</invoke>",)),
                ),
                arguments=(
                    Tag(open='<parameter name="{key}">', close=("</parameter>",)),
                    Tag(open="<parameter name='{key}'>", close=("</parameter>",)),
                    Tag(open="<parameter name={key}>", close=("</parameter>",)),
                ),
                blocks=(),
                object_keys=None,
                separator="",
                at_start=False,
                trims_newline=False,
                item="",
                values=Values(default="string", literals=("json",), escapes=()),
                envelopes=(),
                infers_name=False,
                invalid_body="release",
                orphans=(),
            ),
            Grammar(
                shape="tagged",
                variants=("m3",),
                wrappers=(Tag(open="]<]minimax[>[<tool_call>", close=("]<]minimax[>[</tool_call>",)),),
                is_bare=False,
                calls=(Tag(open=']<]minimax[>[<invoke name="{name}">', close=("]<]minimax[>[</invoke>",)),),
                arguments=(Tag(open="]<]minimax[>[<{key}>", close=("]<]minimax[>[</{key}>",)),),
                blocks=(),
                object_keys=None,
                separator="",
                at_start=False,
                trims_newline=False,
                item="item",
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
                variant="m2",
                section="<minimax:tool_call>\n{calls}</minimax:tool_call>",
                call='<invoke name="{name}">\n{arguments}</invoke>\n',
                argument='<parameter name="{key}">{value}</parameter>\n',
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="one_line",
                variant="m2",
                section="<minimax:tool_call>{calls}</minimax:tool_call>",
                call='<invoke name="{name}">{arguments}</invoke>',
                argument='<parameter name="{key}">{value}</parameter>',
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="single_quotes",
                variant="m2",
                section="<minimax:tool_call>\n{calls}</minimax:tool_call>",
                call="<invoke name='{name}'>\n{arguments}</invoke>\n",
                argument="<parameter name='{key}'>{value}</parameter>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_quotes",
                variant="m2",
                section="<minimax:tool_call>\n{calls}</minimax:tool_call>",
                call="<invoke name={name}>\n{arguments}</invoke>\n",
                argument="<parameter name={key}>{value}</parameter>\n",
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_argument_closers",
                variant="m2",
                section="<minimax:tool_call>\n{calls}</minimax:tool_call>",
                call='<invoke name="{name}">\n{arguments}</invoke>\n',
                argument='<parameter name="{key}">{value}',
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=("arguments",),
                trims_newline=False,
            ),
            Form(
                name="unterminated",
                variant="m2",
                section="<minimax:tool_call>\n{calls}",
                call='<invoke name="{name}">\n{arguments}</invoke>\n',
                argument='<parameter name="{key}">{value}</parameter>\n',
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="canonical",
                variant="m3",
                section="]<]minimax[>[<tool_call>\n{calls}]<]minimax[>[</tool_call>",
                call=']<]minimax[>[<invoke name="{name}">{arguments}]<]minimax[>[</invoke>\n',
                argument="]<]minimax[>[<{key}>{value}]<]minimax[>[</{key}>",
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="lines",
                variant="m3",
                section="]<]minimax[>[<tool_call>\n{calls}]<]minimax[>[</tool_call>",
                call=']<]minimax[>[<invoke name="{name}">\n{arguments}]<]minimax[>[</invoke>\n',
                argument="]<]minimax[>[<{key}>{value}]<]minimax[>[</{key}>\n",
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="unterminated",
                variant="m3",
                section="]<]minimax[>[<tool_call>\n{calls}",
                call=']<]minimax[>[<invoke name="{name}">{arguments}]<]minimax[>[</invoke>\n',
                argument="]<]minimax[>[<{key}>{value}]<]minimax[>[</{key}>",
                call_separator="",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
        ),
        writings={
            "m2": Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</parameter>",
                    "</invoke>",
                    '<parameter name="',
                    "<parameter name='",
                    "<parameter name=",
                ),
                id="",
                index_base=0,
            ),
            "m3": Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("elements",),
                    "array": ("elements",),
                },
                element="]<]minimax[>[<{key}>{value}]<]minimax[>[</{key}>",
                item_key="item",
                never_in_string=(
                    "]<]minimax[>[</",
                    "]<]minimax[>[</invoke>",
                    "]<]minimax[>[<",
                ),
                id="",
                index_base=0,
            ),
            None: Writing(
                content="{text}",
                reasoning=None,
                part_separator="",
                epilogue="",
                starts_inside_content=False,
                values={
                    "string": ("raw",),
                    "boolean": ("json",),
                    "null": ("json",),
                    "number": ("json",),
                    "object": ("json",),
                    "array": ("json",),
                },
                element="",
                item_key="",
                never_in_string=(
                    "</parameter>",
                    "</invoke>",
                    '<parameter name="',
                    "<parameter name='",
                    "<parameter name=",
                ),
                id="",
                index_base=0,
            ),
        },
        examples=(
            Example(
                text='Yes.\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
                variant="m2",
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo", "days": 2}',
                    ),
                ),
                content="Yes.\n",
            ),
            Example(
                text=']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo]<]minimax[>[</city>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>',
                variant="m3",
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo"}',
                    ),
                ),
                content="",
            ),
        ),
        not_calls=(
            "Calls begin with <minimax:tool_call> on a line of its own.",
            "The token ]<]minimax[>[ precedes every tag.",
            "]<]minimax[>[<tool_call> opens a block of calls.",
        ),
        markers=(
            "<minimax:tool_call>",
            "]<]minimax[>[<tool_call>",
        ),
    ),
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
    "mistral": FormatSpec(
        name="mistral",
        title="Mistral v7 and v11",
        aliases=(
            "mistral_v7",
            "mistral_v11",
        ),
        variants=(
            "v7",
            "v11",
        ),
        detect=(
            Detect(
                order=80,
                variant="v11",
                all=(
                    "[TOOL_CALLS]",
                    "[ARGS]",
                ),
                any=(),
                none=(),
            ),
            Detect(order=81, variant="v7", all=("[TOOL_CALLS]",), any=(), none=()),
        ),
        dialects={None: ("bracket_think",)},
        tokens=TokenNeeds(skip_special_tokens=False, spaces_between_special_tokens=True),
        framing=(),
        undeclared="release",
        ids="random",
        history_id="[a-zA-Z0-9]{9}",
        grammars=(
            Grammar(
                shape="json",
                variants=("v7",),
                wrappers=(
                    Tag(open="[TOOL_CALLS]{ws}[", close=("]",)),
                    Tag(open="[TOOL_CALLS] [", close=("]",)),
                    Tag(open="[TOOL_CALLS][", close=()),
                ),
                is_bare=False,
                calls=(),
                arguments=(),
                blocks=(),
                object_keys=ObjectKeys(
                    name=("name",), arguments=("arguments",), other=("id",), arguments_required=False, unknown="ignore"
                ),
                separator=",",
                at_start=False,
                trims_newline=False,
                item="",
                values=Values(default="json", literals=("json",), escapes=()),
                envelopes=(),
                infers_name=False,
                invalid_body="release",
                orphans=(),
            ),
            Grammar(
                shape="json",
                variants=("v11",),
                wrappers=(),
                is_bare=True,
                calls=(
                    Tag(open="[TOOL_CALLS]{ws}{name}{ws}[ARGS]", close=()),
                    Tag(open="[TOOL_CALLS]{ws}{name}[CALL_ID]{id}[ARGS]", close=()),
                    Tag(open="[TOOL_CALLS]{ws}{name}", close=()),
                    Tag(open="[TOOL_CALLS]{name}[ARGS]", close=()),
                ),
                arguments=(),
                blocks=(),
                object_keys=None,
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
                variant="v7",
                section="[TOOL_CALLS][{calls}]",
                call='{"name": {name|json}, "arguments": {arguments}, "id": "a1b2c3d4e"}',
                argument=None,
                call_separator=", ",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="no_id",
                variant="v7",
                section="[TOOL_CALLS][{calls}]",
                call='{"name": {name|json}, "arguments": {arguments}}',
                argument=None,
                call_separator=", ",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="spaces",
                variant="v7",
                section="[TOOL_CALLS] [ {calls} ]",
                call='{"name": {name|json}, "arguments": {arguments}, "id": "a1b2c3d4e"}',
                argument=None,
                call_separator=", ",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="unterminated",
                variant="v7",
                section="[TOOL_CALLS][{calls}",
                call='{"name": {name|json}, "arguments": {arguments}, "id": "a1b2c3d4e"}',
                argument=None,
                call_separator=", ",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="end",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="canonical",
                variant="v11",
                section="{calls}",
                call="[TOOL_CALLS]{name}[ARGS]{arguments}",
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
                name="call_id",
                variant="v11",
                section="{calls}",
                call="[TOOL_CALLS]{name}[CALL_ID]{id}[ARGS]{arguments}",
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
                name="marker_lost",
                variant="v11",
                section="{calls}",
                call="[TOOL_CALLS]{name}{arguments}",
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
                name="space",
                variant="v11",
                section="{calls}",
                call="[TOOL_CALLS]{name}[ARGS] {arguments}",
                argument=None,
                call_separator="",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
        ),
        writings={
            "v7": Writing(
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
            ),
            "v11": Writing(
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
            ),
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
            ),
        },
        examples=(
            Example(
                text='Sure.[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "a1b2c3d4e"}]',
                variant="v7",
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo"}',
                    ),
                ),
                content="Sure.",
            ),
            Example(
                text='[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo", "days": 2}',
                variant="v11",
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo", "days": 2}',
                    ),
                ),
                content="",
            ),
        ),
        not_calls=(
            "The marker is [TOOL_CALLS] and a name follows.",
            "Arrays use a[i], and [TOOL CALLS] is none.",
        ),
        markers=(
            "[TOOL_CALLS]",
            "[TOOL_CALLS] [",
            "[TOOL_CALLS][",
        ),
    ),
    "llama3_json": FormatSpec(
        name="llama3_json",
        title="Llama 3 JSON",
        aliases=(
            "llama3",
            "llama3_1",
        ),
        variants=(),
        detect=(
            Detect(
                order=90,
                variant=None,
                all=(),
                any=(
                    '{"name": function name, "parameters": dictionary of argument name and its value}',
                    "<|python_tag|>",
                ),
                none=(),
            ),
        ),
        dialects={None: ()},
        tokens=TokenNeeds(skip_special_tokens=False, spaces_between_special_tokens=True),
        framing=(),
        undeclared="release",
        ids="random",
        history_id="",
        grammars=(
            Grammar(
                shape="json",
                variants=(),
                wrappers=(Tag(open="<|python_tag|>", close=()),),
                is_bare=False,
                calls=(),
                arguments=(),
                blocks=(),
                object_keys=ObjectKeys(
                    name=("name",),
                    arguments=(
                        "parameters",
                        "arguments",
                    ),
                    other=("type",),
                    arguments_required=True,
                    unknown="reject",
                ),
                separator=";",
                at_start=True,
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
                section="{calls}",
                call='{"name": {name|json}, "parameters": {arguments}}',
                argument=None,
                call_separator="; ",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="start",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="python_tag",
                variant=None,
                section="<|python_tag|>{calls}",
                call='{"name": {name|json}, "parameters": {arguments}}',
                argument=None,
                call_separator="; ",
                argument_separator="",
                many_calls=True,
                empty_call=None,
                at="anywhere",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="arguments_key",
                variant=None,
                section="{calls}",
                call='{"name": {name|json}, "arguments": {arguments}}',
                argument=None,
                call_separator="; ",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="start",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="type_first",
                variant=None,
                section="{calls}",
                call='{"type": "function", "name": {name|json}, "parameters": {arguments}}',
                argument=None,
                call_separator="; ",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="start",
                requires=(),
                trims_newline=False,
            ),
            Form(
                name="name_last",
                variant=None,
                section="<|python_tag|>{calls}",
                call='{"parameters": {arguments}, "name": {name|json}}',
                argument=None,
                call_separator="; ",
                argument_separator="",
                many_calls=False,
                empty_call=None,
                at="anywhere",
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
                text='{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}',
                variant=None,
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo", "days": 2}',
                    ),
                ),
                content="",
            ),
            Example(
                text='On it.<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}',
                variant=None,
                calls=(
                    (
                        "get_weather",
                        '{"city": "Oslo"}',
                    ),
                ),
                content="On it.",
            ),
        ),
        not_calls=(
            "The model writes <|python_tag|> before a call.",
            'Run <|python_tag|>brave_search.call(query="x") yourself.',
        ),
        markers=("<|python_tag|>",),
    ),
}
