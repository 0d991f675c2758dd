"""One format file to its FormatSpec.

Owns the checks inside one file, each with its line, and the defaults of what a file leaves out. Knows no other format.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import jsonschema

from codegen.format_derive import DeriveError, Markers, derive, head_of, object_keys
from codegen.format_forms import read, spelled_forms, trims_newline, written
from codegen.format_tables import (
    Channels,
    Detect,
    Example,
    Form,
    FormatSpec,
    Grammar,
    ObjectKeys,
    TokenNeeds,
    Values,
    Writing,
)
from codegen.source import NodePath, YamlFile

_JSON_TYPES = ("string", "boolean", "null", "number", "object", "array")
_JSON_VALUES: dict[str, list[str]] = {kind: ["json"] for kind in _JSON_TYPES}
_JSON_TYPING: dict[str, Any] = {"default": "json", "literals": ["json"]}


def build_format(file: YamlFile, schema: dict[str, Any]) -> FormatSpec:
    """The table of one file. Raises SpecError."""
    _check_schema(file, schema)
    data = file.data
    if data["name"] != file.path.stem:
        raise file.error("the name must be the file's", "name")
    forms: list[Form] = []
    grammars: list[Grammar] = []
    writings: dict[str | None, Writing] = {}
    for number, raw in enumerate(data.get("grammars", ())):
        spelled = spelled_forms(file, raw, ("grammars", number))
        grammar = _grammar(file, raw, [read(form) for form in spelled], ("grammars", number))
        grammars.append(grammar)
        forms += [written(form, grammar.trims_newline) for form in spelled]
        writings |= {variant: _writing(data, raw, _value_ends(grammar)) for variant in grammar.variants or (None,)}
    channels = _channels(data["channels"]) if "channels" in data else None
    if channels is not None:
        forms = [written(form, False) for form in spelled_forms(file, data["channels"], ("channels",))]
        writings = {None: _writing(data, {}, ())}
    writings.setdefault(None, next(iter(writings.values())))
    framing = tuple(data.get("framing", ()))
    tokens = data["tokens"]
    return FormatSpec(
        name=data["name"],
        title=data["title"],
        aliases=tuple(data.get("aliases", ())),
        variants=tuple(dict.fromkeys(form.variant for form in forms if form.variant)),
        detect=tuple(_detect(one) for one in data["detect"]),
        dialects=_dialects(data.get("dialects", [])),
        tokens=TokenNeeds(tokens["skip_special_tokens"], tokens.get("spaces_between_special_tokens", True)),
        framing=framing,
        undeclared=data["undeclared"],
        ids=data["ids"],
        history_id=data.get("history_id", ""),
        grammars=tuple(grammars),
        channels=channels,
        forms=tuple(forms),
        writings=writings,
        examples=tuple(_example(one) for one in data["examples"]),
        not_calls=tuple(data["not_calls"]),
        markers=_markers(grammars, channels, framing),
    )


def _check_schema(file: YamlFile, schema: dict[str, Any]) -> None:
    """Raises SpecError with the line of the deepest complaint of the JSON Schema."""
    validator = jsonschema.Draft202012Validator(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(file.data))
    if error is not None:
        raise file.error(error.message, *error.absolute_path)


def _grammar(file: YamlFile, raw: dict[str, Any], forms: list[Form], at: NodePath) -> Grammar:
    if raw["shape"] == "tagged" and forms[0].argument is None:
        raise file.error("a tagged grammar's first form needs an argument", *at, "forms", 0)
    try:
        markers = derive(forms, is_object_call="object" in raw)
        keys = ObjectKeys(*object_keys(forms), **raw["object"]) if "object" in raw else None
    except DeriveError as error:
        raise file.error(f"form {forms[error.form].name!r}: {error}", *at, "forms", error.form, error.field) from error
    _check_markers(file, raw, markers, at)
    typing = raw.get("typing", _JSON_TYPING)
    return Grammar(
        shape=raw["shape"],
        variants=tuple(dict.fromkeys(form.variant for form in forms if form.variant)),
        wrappers=markers.wrappers,
        is_bare=markers.is_bare,
        calls=markers.calls,
        arguments=markers.arguments,
        blocks=markers.blocks,
        object_keys=keys,
        separator=markers.separator,
        at_start=markers.at_start,
        trims_newline=trims_newline(forms),
        item=raw["elements"]["item"] if "elements" in raw else "",
        values=Values(typing["default"], tuple(typing["literals"]), tuple(map(tuple, typing.get("escapes", ())))),
        envelopes=tuple(raw.get("envelopes", ())),
        infers_name=raw.get("infers_name", False),
        invalid_body=raw.get("invalid_body", "release"),
        orphans=tuple(raw.get("orphans", ())),
    )


def _check_markers(file: YamlFile, raw: dict[str, Any], markers: Markers, at: NodePath) -> None:
    """A region must be findable, and every tag must begin with something that a scanner can look for."""
    forms = (*at, "forms")
    if not (markers.wrappers or markers.at_start or (markers.is_bare and markers.calls)):
        raise file.error("no form says how a region opens", *forms)
    for tag in chain(markers.wrappers, markers.calls, markers.arguments):
        for pattern in (tag.open, *tag.close):
            if not head_of(pattern):
                raise file.error(f"{pattern!r} must begin with a literal", *forms)
    if raw["shape"] == "json" and markers.arguments:
        raise file.error("the arguments of a JSON grammar have no tags", *forms)


def _value_ends(grammar: Grammar) -> tuple[str, ...]:
    """Literals that end a raw value: closers of arguments and calls, and what opens the next argument."""
    closers = (end for tag in (*grammar.arguments, *grammar.calls) for end in tag.close)
    ends = () if grammar.shape == "json" else (*closers, *(tag.open for tag in grammar.arguments))
    return tuple(dict.fromkeys(map(head_of, ends)))


def _writing(data: dict[str, Any], raw: dict[str, Any], never_in_string: tuple[str, ...]) -> Writing:
    own = data.get("writing", {})
    elements = raw.get("elements")
    return Writing(
        content=own.get("content", "{text}"),
        reasoning=own.get("reasoning"),
        part_separator=own.get("part_separator", ""),
        epilogue=own.get("epilogue", ""),
        starts_inside_content=own.get("starts_inside_content", False),
        values={kind: tuple(spellings) for kind, spellings in raw.get("values", _JSON_VALUES).items()},
        element=raw["forms"][0]["argument"] if elements else "",
        item_key=elements["item"] if elements else "",
        never_in_string=never_in_string,
        id=own.get("id", ""),
        index_base=own.get("index_base", 0),
    )


def _channels(raw: dict[str, Any]) -> Channels:
    return Channels(
        start=raw["start"],
        channel=raw["channel"],
        message=raw["message"],
        ends=tuple(raw["ends"]),
        to=raw["to"],
        constrain=raw["constrain"],
        kinds=dict(raw["kinds"]),
        recipient=raw["recipient"],
        builtins=tuple(raw.get("builtins", ())),
        invalid_body=raw.get("invalid_body", "release"),
    )


def _detect(raw: dict[str, Any]) -> Detect:
    evidence = (tuple(raw.get(kind, ())) for kind in ("all", "any", "none"))
    return Detect(raw["order"], raw.get("variant"), *evidence)


def _dialects(raw: Any) -> dict[str | None, tuple[str, ...]]:
    by_variant = raw if isinstance(raw, dict) else {None: raw}
    return {variant: tuple(names) for variant, names in by_variant.items()}


def _example(raw: dict[str, Any]) -> Example:
    calls = tuple((one["name"], json.dumps(one["arguments"], ensure_ascii=False)) for one in raw["calls"])
    return Example(raw["text"], raw.get("variant"), calls, raw.get("content", ""))


def _markers(grammars: list[Grammar], channels: Channels | None, framing: tuple[str, ...]) -> tuple[str, ...]:
    """What the reader looks for outside regions, in the order of the tables."""
    if channels is not None:
        return (channels.start, channels.channel, channels.message, *channels.ends)
    heads = [
        head_of(tag.open)
        for grammar in grammars
        for tag in (*grammar.wrappers, *(grammar.calls if grammar.is_bare else ()))
    ]
    # Where one opener begins like another, the shorter one is looked for.
    openers = [head for head in heads if not any(head != other and head.startswith(other) for other in heads)]
    return tuple(dict.fromkeys((*openers, *framing)))
