"""Values of settings: from text, checked against spec/settings.yaml.

The command line and the keywords of LLMEngine meet here, so both get the same checks and words. Owns the reading of
byte sizes, JSON and bounds; knows no particular setting.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from atom_spec.settings import Setting

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """Bytes in "2GiB", "1.5g" or "4096". A lone letter is binary, as in other tools' memory flags: 512M is 512 MiB.

    512MB is decimal. ValueError on anything else.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no size: write bytes or a suffix, such as 512M or 2GiB")
    unit = (match[2] or "").lower()
    if unit and "b" not in text.lower() and not unit.endswith("i"):
        unit += "i"
    return int(float(match[1]) * _UNITS[unit])


def parse_text(setting: Setting, text: str) -> Any:
    """One value of the setting from a command line or a variable. ValueError says what was expected."""
    if setting.type == "integer":
        return _number(int, text, "a whole number")
    if setting.type == "number":
        return _number(float, text, "a number")
    if setting.type == "bytes":
        return parse_bytes(text)
    if setting.type == "boolean":
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{text!r} is neither 1, true, on, yes nor 0, false, off, no")
        return _BOOLEANS[text.lower()]
    if setting.type in ("json", "integers"):
        return _parse_json(setting, text)
    return text


_BOOLEANS = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}


def check_value(setting: Setting, value: Any) -> Any:
    """The value in its own Python type: a tuple where several may be given, a dict for JSON, a Path for a path.

    None stays None (not set). Raises ValueError without the setting's name, which the caller knows how to spell.
    """
    if value is None:
        if setting.type == "boolean" or setting.default is not None:
            raise ValueError("a value is needed")
        return None
    if setting.many or setting.repeat:
        values = (value,) if isinstance(value, str) else value
        if not isinstance(values, Sequence) or not values or not all(isinstance(v, str) and v for v in values):
            raise ValueError(f"one or more non-empty strings are needed, got {value!r}")
        return tuple(values)
    value = _typed(setting, value)
    if setting.choices and value not in setting.choices:
        raise ValueError(f"{value!r} is not one of {', '.join(setting.choices)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_bounds(setting, value)
    return value


def refusal(setting: Setting, value: Any) -> str | None:
    """Why this (checked) value can not be used yet, or None when it can."""
    if setting.refuse is None or value == setting.default or value in setting.allow:
        return None
    return setting.refuse


def _typed(setting: Setting, value: Any) -> Any:
    if isinstance(value, str) and setting.type in ("bytes", "json", "integers"):
        value = parse_text(setting, value)
    is_bool = isinstance(value, bool)
    match setting.type:
        case "string" if isinstance(value, str | Path) and str(value):
            return str(value)
        case "path" if isinstance(value, str | Path) and str(value):
            return Path(value)
        case "integer" | "bytes" if isinstance(value, int) and not is_bool:
            return value
        case "number" if isinstance(value, int | float) and not is_bool:
            return float(value)
        case "boolean" if is_bool:
            return value
        case "json" if isinstance(value, dict):
            return value
        case "integers" if isinstance(value, list | tuple) and all(type(v) is int and v > 0 for v in value):
            return tuple(value)
    raise ValueError(f"{value!r} is not {_EXPECTED[setting.type]}")


_EXPECTED = {
    "string": "a non-empty string",
    "path": "a path",
    "integer": "a whole number",
    "bytes": "a number of bytes",
    "number": "a number",
    "boolean": "True or False",
    "json": "a JSON object",
    "integers": "a list of positive whole numbers, such as [1,2,4]",
}


def _check_bounds(setting: Setting, value: int | float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    if setting.above is not None and not value > setting.above:
        raise ValueError(f"{value} is not above {setting.above:g}")
    if setting.minimum is not None and value < setting.minimum:
        raise ValueError(f"{value} is less than {setting.minimum:g}")
    if setting.maximum is not None and value > setting.maximum:
        raise ValueError(f"{value} is more than {setting.maximum:g}")


def _number(kind: type[int] | type[float], text: str, expected: str) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is not {expected}") from None


def _parse_json(setting: Setting, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not {_EXPECTED[setting.type]}: {error}") from None
