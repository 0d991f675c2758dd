"""spec/settings.yaml -> atom_spec/settings.py and docs/settings.md.

Owns what a setting may say; a wrong key, type or default is an error with its line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codegen.source import SpecError, YamlFile
from codegen.text import format_python, markdown_header, markdown_table, python_header

_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "path": str,
    "integer": int,
    "bytes": int,
    "number": (int, float),
    "boolean": bool,
    "json": dict,
    "integers": list,
}
_FLAG_KEYS = [
    "name",
    "type",
    "default",
    "choices",
    "short",
    "many",
    "repeat",
    "bare",
    "env",
    "refuse",
    "allow",
    "minimum",
    "maximum",
    "above",
    "group",
    "used_by",
    "help",
]
_ENV_KEYS = ["name", "type", "default", "choices", "refuse", "minimum", "maximum", "above", "help"]
_REQUIRED = ("name", "type", "default", "help")

_CLASS = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Value = str | int | float | bool | None
SettingType = Literal[{types}]


@dataclass(frozen=True, slots=True)
class Setting:
    """One flag or one environment variable.

    flags: every spelling, the one with dashes first; empty for a variable. many: one or more values at once; repeat:
    the flag may be given several times; either makes the value a tuple. bare: the value of the flag without one.
    refuse: why any value but the default and those in `allow` is an error. above: exclusive lower bound.
    """

    name: str
    type: SettingType
    default: Value
    help: str
    group: str
    used_by: Literal["engine", "server", "environment"]
    flags: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    many: bool = False
    repeat: bool = False
    bare: Value = None
    env: str | None = None
    refuse: str | None = None
    allow: tuple[Value, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None


'''


def emit(spec_dir: Path) -> dict[str, str]:
    """The module with SETTINGS, ENVIRONMENT and GROUPS, and the tables for people."""
    file = YamlFile(spec_dir / "settings.yaml")
    groups: dict[str, str] = file.data["groups"]
    settings = [_read(file, "flags", i, _FLAG_KEYS, groups) for i in range(len(file.data["flags"]))]
    variables = [_read(file, "environment", i, _ENV_KEYS, groups) for i in range(len(file.data["environment"]))]
    for index, setting in enumerate(settings):
        if setting.get("env") and setting["env"] not in {v["name"] for v in variables}:
            raise file.error(f"{setting['env']} is not declared under environment", "flags", index, "env")
    return {"settings.py": _module(groups, settings, variables), "docs/settings.md": _page(groups, settings, variables)}


def _read(file: YamlFile, section: str, index: int, keys: list[str], groups: dict[str, str]) -> dict[str, Any]:
    raw: dict[str, Any] = file.data[section][index]
    at = (section, index)
    for key in raw:
        if key not in keys:
            raise file.error(f"{key!r} is no key of a setting", *at, key)
    for key in _REQUIRED:
        if key not in raw:
            raise file.error(f"{key!r} is missing", *at)
    if any(other["name"] == raw["name"] for other in file.data[section][:index]):
        raise file.error(f"{raw['name']} is declared twice", *at, "name")
    if raw["type"] not in _PYTHON_TYPES:
        raise file.error(f"unknown type {raw['type']!r}", *at, "type")
    _check_values(file, raw, at)
    setting = dict(raw)
    if section == "environment":
        return {**setting, "group": "environment", "used_by": "environment"}
    if raw.get("group") not in groups:
        raise file.error(f"unknown group {raw.get('group')!r}", *at, "group")
    if raw.get("used_by") not in ("engine", "server"):
        raise file.error("used_by must be engine or server", *at, "used_by")
    if raw["name"] != raw["name"].lower() or "-" in raw["name"]:
        raise file.error("write the name in lower case with underscores", *at, "name")
    setting["flags"] = _spellings(raw["name"], raw.pop("short", []))
    setting.pop("short", None)
    return setting


def _check_values(file: YamlFile, raw: dict[str, Any], at: tuple[str, int]) -> None:
    kind = _PYTHON_TYPES[raw["type"]]
    for key in ("default", "bare"):
        value = raw.get(key)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise file.error(f"{key} {value!r} is no {raw['type']}", *at, key)
        if value is not None and raw.get("choices") and value not in raw["choices"]:
            raise file.error(f"{key} {value!r} is not among the choices", *at, key)
    if raw["type"] == "boolean" and raw["default"] is None:
        raise file.error("a boolean needs a default", *at, "default")
    if raw.get("allow") and not raw.get("refuse"):
        raise file.error("allow says nothing without refuse", *at, "allow")


def _spellings(name: str, short: list[str]) -> tuple[str, ...]:
    dashes = "--" + name.replace("_", "-")
    underscores = "--" + name
    return (dashes, *([underscores] if underscores != dashes else []), *short)


def _literal(value: Any) -> str:
    return repr(tuple(value) if isinstance(value, list) else value)


def _constructor(setting: dict[str, Any]) -> str:
    order = (*_REQUIRED, "group", "used_by", "flags", *(k for k in _FLAG_KEYS if k not in (*_REQUIRED, "short")))
    keys = [key for key in dict.fromkeys(order) if key in setting]
    arguments = (f"{key}={_literal(setting[key])}" for key in keys)
    return f"    Setting({', '.join(arguments)}),\n"


def _module(groups: dict[str, str], settings: list[dict[str, Any]], variables: list[dict[str, Any]]) -> str:
    text = python_header("spec/settings.yaml", "Every command-line flag and environment variable, as data.")
    text += _CLASS.replace("{types}", ", ".join(repr(name) for name in _PYTHON_TYPES))
    text += f"GROUPS: dict[str, str] = {groups!r}\n\n"
    text += "SETTINGS: tuple[Setting, ...] = (\n" + "".join(map(_constructor, settings)) + ")\n\n"
    text += "ENVIRONMENT: tuple[Setting, ...] = (\n" + "".join(map(_constructor, variables)) + ")\n"
    return format_python(text)


def _page(groups: dict[str, str], settings: list[dict[str, Any]], variables: list[dict[str, Any]]) -> str:
    text = markdown_header("spec/settings.yaml")
    text += "# Flags and environment variables\n\n"
    text += (
        "Every long flag has two spellings, `--like-this` and `--like_this`, and is never abbreviated. A flag that is"
        " on by default is turned off by its `--no-` form.\nFlags marked *later* are known but refuse any other value"
        " than their default, since what they control is not there yet.\nThe flags of the engine are also keywords of"
        " `LLMEngine`, by their name with underscores.\n"
    )
    for group, title in groups.items():
        rows = [_row(s) for s in (settings if group != "environment" else variables) if s["group"] == group]
        if rows:
            head = ("variable" if group == "environment" else "flag", "values", "default", "what it does")
            text += f"\n## {title}\n\n" + markdown_table(head, rows)
    return text


def _row(setting: dict[str, Any]) -> tuple[str, str, str, str]:
    flags = setting.get("flags")
    if not flags:
        names = f"`{setting['name']}`"
    else:
        shown = [flags[0], *(flag for flag in flags if not flag.startswith("--"))]
        if setting["type"] == "boolean" and setting["default"]:
            shown.append("--no-" + flags[0][2:])
        names = ", ".join(f"`{flag}`" for flag in shown)
    values = ", ".join(f"`{choice}`" for choice in setting.get("choices", ())) or setting["type"]
    if setting.get("many"):
        values += ", one or more"
    if setting.get("repeat"):
        values += ", repeatable"
    default = "" if setting["default"] is None else f"`{_default(setting)}`"
    notes = setting["help"]
    if setting.get("env"):
        notes += f" Also `{setting['env']}`."
    if setting.get("refuse"):
        notes += f" *Later*: {setting['refuse']}."
    return names, values, default, notes


def _default(setting: dict[str, Any]) -> str:
    if setting["type"] == "boolean":
        return "on" if setting["default"] else "off"
    if setting["type"] == "bytes" and setting["default"] % 2**20 == 0:
        return f"{setting['default'] // 2**20}MiB"
    return str(setting["default"])


__all__ = ["SpecError", "emit"]
