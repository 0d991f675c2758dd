"""From a request's body to a struct of atom_spec, or one error that names the field.

Owns what JSON may look like here: types are strict (no "1" for 1, no 1 for true), 1.0 is an integer as in JSON Schema,
unpaired surrogates, numbers beyond a float and absurd nesting are errors. Knows no endpoint. msgspec was chosen over
pydantic (docs/decisions/0010): strict without options, 1.8 us against 5.2 us for a request of three messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec
from atom_spec.responses import ResponsesRequest
from msgspec import inspect

from atom.entrypoints.openai.request_rules import RuleError, check_rules

T = TypeVar("T", bound=msgspec.Struct)

MAX_DEPTH = 128
_MAX_MESSAGE = 400
_LOCATED = re.compile(r"(?P<what>.*?) - at `(?:key in `)?\$?(?P<where>.*?)`+", re.DOTALL)
_FIELD_IN_TEXT = re.compile(r"Object (?:missing required|contains unknown) field `(?P<field>.*)`", re.DOTALL)
_BYTE_OFFSET = re.compile(r"\(byte (\d+)\)")
_KEY_BEFORE = re.compile(rb'"(\w{1,64})"\s*:\s*-?\Z')
_JSON_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class RequestDecodeError(ValueError):
    """The body is not the request it should be. `param` is the field's path, such as messages[0].content, or None."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


def decode(model: type[T], body: bytes) -> T:
    """The body as `model`, its rules checked. Raises RequestDecodeError, and nothing else, for a body that is wrong."""
    try:
        request = _decode_strictly(model, body)
        check_rules(request)
    except RecursionError:
        raise RequestDecodeError("The body is nested too deeply") from None
    except RuleError as error:
        raise RequestDecodeError(str(error), error.param) from None
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(str(error), body) from None
    if _depth_exceeds(body, MAX_DEPTH):
        raise RequestDecodeError(f"The body is nested more than {MAX_DEPTH} levels deep")
    return request


@cache
def _decoder(model: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(model)


@cache
def _type_of(model: Any) -> inspect.Type:
    return inspect.type_info(model)


def _decode_strictly(model: type[T], body: bytes) -> T:
    complete = _COMPLETED.get(model)
    if complete is not None:
        return msgspec.convert(_integers(complete(msgspec.json.decode(body)), _type_of(model)), model)
    decoder: msgspec.json.Decoder[T] = _decoder(model)
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        # Rare and slower: somebody wrote an integer as 1.0.
        if "got `float`" not in str(error):
            raise
    value = _integers(msgspec.json.decode(body), _type_of(model))
    return msgspec.convert(value, model)


def _with_message_types(body: Any) -> Any:
    """A ResponsesRequest whose messages say that they are: OpenAI lets them leave the type out, a struct does not."""
    items = body.get("input") if isinstance(body, dict) else None
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("type") is None and "role" in item:
            item["type"] = "message"
    return body


# What a body may leave out although the structs need it.
_COMPLETED: dict[Any, Callable[[Any], Any]] = {ResponsesRequest: _with_message_types}


def _integers(value: Any, kind: inspect.Type) -> Any:
    """`value` with whole floats made integers where `kind` wants an integer and no float."""
    options = list(kind.types) if isinstance(kind, inspect.UnionType) else [kind]
    if isinstance(value, float):
        wants_int = any(isinstance(o, inspect.IntType) for o in options)
        wants_float = any(isinstance(o, inspect.FloatType) for o in options)
        return int(value) if wants_int and not wants_float and value.is_integer() else value
    if isinstance(value, list):
        arrays = (o for o in options if isinstance(o, inspect.ListType))
        array = next(arrays, None)
        return value if array is None else [_integers(item, array.item_type) for item in value]
    if not isinstance(value, dict):
        return value
    for option in options:
        if isinstance(option, inspect.DictType):
            return {key: _integers(item, option.value_type) for key, item in value.items()}
        if isinstance(option, inspect.StructType) and option.tag in (None, value.get(option.tag_field or "")):
            fields = {field.encode_name: field.type for field in option.fields}
            return {key: _integers(item, fields[key]) if key in fields else item for key, item in value.items()}
    return value


def _invalid(text: str) -> RequestDecodeError:
    located = _LOCATED.fullmatch(text)
    what, path = (located["what"], located["where"]) if located else (text, "")
    path = path.lstrip(".").replace("[...]", "")
    named = _FIELD_IN_TEXT.fullmatch(what)
    if named:
        path = f"{path}.{named['field']}" if path else named["field"]
        what = "is missing" if "missing" in what else "is no field here"
    elif what.startswith("Expected `null`"):
        what = "is not supported"
    else:
        what = what[:1].lower() + what[1:]
    message = f"{path}: {what}" if path else f"The body is wrong: {what}"
    return RequestDecodeError(_shorten(message), _shorten(path) or None)


def _malformed(text: str, body: bytes) -> RequestDecodeError:
    """Not JSON. NaN and Infinity end up here, so the key before the fault is looked up."""
    offset = _BYTE_OFFSET.search(text)
    at = int(offset[1]) if offset else 0
    key = _KEY_BEFORE.search(body[max(0, at - 128) : at])
    param = key[1].decode() if key else None
    if _SURROGATE.search(body):
        text += "; is there a surrogate escape without its other half?"
    return RequestDecodeError(_shorten(f"{f'{param}: ' if param else ''}The body is not valid JSON: {text}"), param)


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "..."


def _depth_exceeds(body: bytes, limit: int) -> bool:
    """Whether valid JSON nests more than `limit` arrays and objects; linear, and nearly free for small bodies."""
    if body.count(b"[") + body.count(b"{") <= limit:
        return False
    brackets = _JSON_STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    for _ in range(limit):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not brackets:
            return False
    return True
