"""One format file to its FormatSpec.

Owns the file's defaults (a form takes from its variant's first form what it doesn't say) and the checks inside one
file. Knows no other format.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import jsonschema

from codegen.format_derive import HOLE, HOLES, DeriveError, Markers, derive, head_of, object_keys
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
from codegen.source import NodePath, SpecError, YamlFile

_INHERITED = ("section", "call", "argument", "call_separator", "argument_separator", "empty_call")
_JSON_TYPES = ("string", "boolean", "null", "number", "object", "array")
_JSON_VALUES: dict[str, tuple[str, ...]] = dict.fromkeys(_JSON_TYPES, ("json",))


def build_format(file: YamlFile, schema: dict[str, Any]) -> FormatSpec:
    """The table of one file. Raises SpecError."""
    check_schema(file, schema)
    data = file.data
    if data["name"] != file.path.stem:
        raise file.error("the name must be the file's", "name")
    if "channels" in data:
        forms = _forms(file, data["channels"], ("channels",))
        grammars: list[Grammar] = []
        writings: dict[str | None, Writing] = {None: _writing(data, {"values": _JSON_VALUES}, ())}
    else:
        forms, grammars, writings = [], [], {}
        for at, raw in enumerate(data["grammars"]):
            own = _forms(file, raw, ("grammars", at))
            grammar = _grammar(file, raw, own, ("grammars", at))
            ends = _never_in_string(grammar)
            for variant in grammar.variants or (None,):
                writings[variant] = _writing(data, raw, ends)
            forms += own
            grammars.append(grammar)
        writings.setdefault(None, next(iter(writings.values())))
    channels = _channels(data["channels"]) if "channels" in data else None
    framing = tuple(data.get("framing", ()))
    return FormatSpec(
        name=data["name"],
        title=data["title"],
        aliases=tuple(data.get("aliases", ())),
        variants=tuple(dict.fromkeys(form.variant for form in forms if form.variant)),
        detect=tuple(_detect(one) for one in data["detect"]),
        dialects=_dialects(data.get("dialects", [])),
        tokens=TokenNeeds(
            data["tokens"]["skip_special_tokens"], data["tokens"].get("spaces_between_special_tokens", True)
        ),
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


def check_schema(file: YamlFile, schema: dict[str, Any]) -> None:
    """Raises SpecError with the line of the deepest complaint of the JSON Schema."""
    validator = jsonschema.Draft202012Validator(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(file.data))
    if error is not None:
        raise file.error(error.message, *error.absolute_path)


def _forms(file: YamlFile, raw: dict[str, Any], at: NodePath) -> list[Form]:
    forms: list[Form] = []
    firsts: dict[str | None, dict[str, Any]] = {}
    for number, one in enumerate(raw["forms"]):
        where = (*at, "forms", number)
        variant = one.get("variant", raw.get("variant"))
        first = firsts.get(variant, raw["forms"][0])
        full = {key: first[key] for key in _INHERITED if key in first} | one
        firsts.setdefault(variant, full)
        for field in ("section", "call"):
            if field not in full:
                raise file.error(f"the first form of a grammar must have a {field}", *where)
        for field in _INHERITED:
            for match in HOLE.finditer(full.get(field, "")):
                if match.group(1) not in HOLES:
                    raise file.error(f"unknown hole {match.group()}; known: {', '.join(sorted(HOLES))}", *where, field)
        argument = full.get("argument")
        forms.append(
            Form(
                name=full["name"],
                variant=variant,
                section=full["section"].replace("{ws}", ""),
                call=full["call"].replace("{ws}", ""),
                argument=None if argument is None else argument.replace("{ws}", ""),
                call_separator=full.get("call_separator", ""),
                argument_separator=full.get("argument_separator", ""),
                many_calls=full.get("many_calls", False),
                empty_call=full.get("empty_call"),
                at=full.get("at", "anywhere"),
                requires=tuple(full.get("requires", ())),
                trims_newline=_trims(raw),
            )
        )
    return forms


def _trims(raw: dict[str, Any]) -> bool:
    return any("\n{value}" in form.get("argument", "") for form in raw["forms"])


def _grammar(file: YamlFile, raw: dict[str, Any], forms: list[Form], at: NodePath) -> Grammar:
    is_object_call = "object" in raw
    if raw["shape"] == "tagged" and forms[0].argument is None:
        raise file.error("a tagged grammar's first form needs an argument", *at, "forms", 0)
    try:
        markers = derive(_with_space_holes(raw, forms), is_object_call)
        keys = _object_keys(raw["object"], forms) if is_object_call else None
    except DeriveError as error:
        number = next(i for i, form in enumerate(forms) if form.name == error.form)
        raise file.error(str(error), *at, "forms", number, error.field) from error
    except ValueError as error:
        raise file.error(f"calls: {error}", *at, "forms") from error
    _check_markers(file, raw, markers, at)
    typing = raw.get("typing", {"default": "json", "literals": ["json"]})
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
        trims_newline=_trims(raw),
        item=raw["elements"]["item"] if "elements" in raw else "",
        values=Values(
            typing["default"],
            tuple(typing["literals"]),
            tuple((written, meant) for written, meant in typing.get("escapes", ())),
        ),
        envelopes=tuple(raw.get("envelopes", ())),
        infers_name=raw.get("infers_name", False),
        invalid_body=raw.get("invalid_body", "release"),
        orphans=tuple(raw.get("orphans", ())),
    )


def _with_space_holes(raw: dict[str, Any], forms: list[Form]) -> list[Form]:
    """The forms as the file spells them, with `{ws}` where white space is optional."""
    import dataclasses

    spelled: list[Form] = []
    inherited: dict[str | None, dict[str, str]] = {}
    for form, one in zip(forms, raw["forms"], strict=True):
        first = inherited.setdefault(form.variant, {**inherited.get(form.variant, raw["forms"][0]), **one})
        texts = {
            key: one.get(key, first.get(key)) for key in ("section", "call", "argument") if key in {**first, **one}
        }
        spelled.append(dataclasses.replace(form, **texts))
    return spelled


def _object_keys(raw: dict[str, Any], forms: list[Form]) -> ObjectKeys:
    name, arguments, other = object_keys([form.call for form in forms])
    return ObjectKeys(name, arguments, other, raw["arguments_required"], raw["unknown"])


def _check_markers(file: YamlFile, raw: dict[str, Any], markers: Markers, at: NodePath) -> None:
    if not markers.wrappers and not markers.is_bare and not markers.at_start:
        raise file.error("no form says how a region opens", *at, "forms")
    if markers.is_bare and not head_of(markers.calls[0].open if markers.calls else ""):
        raise file.error("a call without a wrapper must begin with a literal", *at, "forms")
    tags = [*markers.wrappers, *markers.calls, *markers.arguments]
    for tag in tags:
        if not head_of(tag.open):
            raise file.error(f"{tag.open!r} must begin with a literal", *at, "forms")
    if raw["shape"] == "json" and markers.arguments:
        raise file.error("a JSON grammar has no argument tags", *at, "forms")


def _never_in_string(grammar: Grammar) -> tuple[str, ...]:
    """Literals that end a raw value: closers of arguments and calls, and what opens the next argument."""
    if grammar.shape == "json":
        return ()
    ends = chain(
        (closer for tag in grammar.arguments for closer in tag.close),
        (closer for tag in grammar.calls for closer in tag.close),
        (tag.open for tag in grammar.arguments),
    )
    return tuple(dict.fromkeys(head_of(end) for end in ends))


def _writing(data: dict[str, Any], raw: dict[str, Any], never_in_string: tuple[str, ...]) -> Writing:
    own = data.get("writing", {})
    values: dict[str, Sequence[str]] = raw.get("values", _JSON_VALUES)
    elements = raw.get("elements")
    return Writing(
        content=own.get("content", "{text}"),
        reasoning=own.get("reasoning"),
        part_separator=own.get("part_separator", ""),
        epilogue=own.get("epilogue", ""),
        starts_inside_content=own.get("starts_inside_content", False),
        values={kind: tuple(spellings) for kind, spellings in values.items()},
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
    return Detect(
        raw["order"],
        raw.get("variant"),
        tuple(raw.get("all", ())),
        tuple(raw.get("any", ())),
        tuple(raw.get("none", ())),
    )


def _dialects(raw: Any) -> dict[str | None, tuple[str, ...]]:
    if isinstance(raw, dict):
        return {variant: tuple(names) for variant, names in raw.items()}
    return {None: tuple(raw)}


def _example(raw: dict[str, Any]) -> Example:
    calls = tuple((one["name"], json.dumps(one["arguments"], ensure_ascii=False)) for one in raw["calls"])
    return Example(raw["text"], raw.get("variant"), calls, raw.get("content", ""))


def _markers(grammars: list[Grammar], channels: Channels | None, framing: tuple[str, ...]) -> tuple[str, ...]:
    """What the reader looks for outside regions, in the order of the tables."""
    if channels is not None:
        return (channels.start, channels.channel, channels.message, *channels.ends)
    openers = [
        head_of(tag.open)
        for grammar in grammars
        for tag in (*grammar.wrappers, *(grammar.calls if grammar.is_bare else ()))
    ]
    return tuple(dict.fromkeys((*openers, *framing)))


__all__ = ["SpecError", "build_format", "check_schema"]
