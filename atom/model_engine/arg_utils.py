"""Command line -> Config and ServerConfig.

Owns argparse: every flag of spec/settings.yaml in both spellings, the `--no-` forms, no abbreviation. Values and their
words come from `setting_values`, so that a flag and a keyword of LLMEngine are refused alike.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from atom_spec.settings import GROUPS, SETTINGS, Setting

from atom.config import ENGINE_SETTINGS, Config
from atom.envs import default_of
from atom.setting_values import check_value, parse_text, refusal

SERVER_SETTINGS = {setting.name: setting for setting in SETTINGS if setting.used_by == "server"}


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """What only the HTTP server has. Times in seconds, `max_request_bytes` in bytes, no api_key: everybody may ask."""

    host: str
    server_port: int
    api_key: tuple[str, ...]
    metrics_without_api_key: bool
    allowed_origins: tuple[str, ...]
    disable_uvicorn_access_log: bool
    request_log: Path | None
    max_request_bytes: int
    timeout_keep_alive: int
    sse_keep_alive: float
    drain_timeout: float


class SettingsParser(argparse.ArgumentParser):
    """A parser that takes no abbreviated flags (a prefix may come to mean another one) and suggests the nearest one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, "usage": "%(prog)s [FLAGS]", **kwargs})

    def error(self, message: str) -> NoReturn:
        """End the process with status 2 and one line; the list of all flags would hide it."""
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        nearest = difflib.get_close_matches(unknown[1], self._option_string_actions, n=1) if unknown else []
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        self.exit(2, f"{self.prog}: error: {message}{hint} (--help lists the flags)\n")


def add_cli_args(parser: argparse.ArgumentParser, groups: Iterable[str] | None = None) -> argparse.ArgumentParser:
    """Add the flags of these groups of spec/settings.yaml (all of them by default) to `parser` and return it.

    A flag that is not given leaves no attribute behind, so that defaults, variables and keywords meet in one place.
    """
    chosen = set(GROUPS if groups is None else groups)
    unknown = chosen - set(GROUPS)
    if unknown:
        raise ValueError(f"no such group of settings: {', '.join(sorted(unknown))}")
    for group, title in GROUPS.items():
        settings = [setting for setting in SETTINGS if setting.group == group and group in chosen]
        if settings:
            section = parser.add_argument_group(title)
            for setting in settings:
                _add_flag(section, setting)
    return parser


def config_from_args(namespace: argparse.Namespace, **defaults: Any) -> Config:
    """The engine's configuration; `defaults` hold for flags that are absent. Raises as Config.resolve does."""
    given = defaults | {name: value for name, value in vars(namespace).items() if name in ENGINE_SETTINGS}
    return Config.resolve(given.pop("model", ENGINE_SETTINGS["model"].default), **given)


def server_config_from_args(namespace: argparse.Namespace) -> ServerConfig:
    """The server's configuration. ValueError that names the flag."""
    given = vars(namespace)
    values: dict[str, Any] = {}
    for name, setting in SERVER_SETTINGS.items():
        try:
            value = check_value(setting, given[name] if name in given else default_of(setting))
        except ValueError as error:
            raise ValueError(f"{setting.flags[0]}: {error}") from None
        values[name] = () if value is None and (setting.many or setting.repeat) else value
    return ServerConfig(**{field.name: values[field.name] for field in fields(ServerConfig)})


def parse_args(argv: Sequence[str] | None = None, prog: str | None = None) -> argparse.Namespace:
    """Parse a command line that has every flag; a wrong one ends the process with a usage line, as argparse does."""
    return add_cli_args(SettingsParser(prog=prog)).parse_args(argv)


def no_spellings(setting: Setting) -> tuple[str, ...]:
    """The flags that turn a boolean off that is on by default."""
    if setting.type != "boolean" or not setting.default:
        return ()
    bare = [flag.removeprefix("--") for flag in setting.flags]
    return tuple(dict.fromkeys([*(f"--no-{name}" for name in bare), f"--no_{setting.name}"]))


def _add_flag(section: argparse._ArgumentGroup, setting: Setting) -> None:
    options: dict[str, Any] = {"dest": setting.name, "default": argparse.SUPPRESS, "help": _help(setting)}
    if setting.type == "boolean":
        section.add_argument(*setting.flags, action="store_const", const=True, **options)
        negative = no_spellings(setting)
        if negative:
            options["help"] = argparse.SUPPRESS
            section.add_argument(*negative, action="store_const", const=False, **options)
        return
    options["type"] = _converter(setting)
    options["metavar"] = f"{{{','.join(setting.choices)}}}" if setting.choices else setting.type.upper()
    if setting.many:
        options["nargs"] = "+"
    elif setting.repeat:
        options["action"] = "append"
    elif setting.bare is not None:
        options |= {"nargs": "?", "const": setting.bare}
    section.add_argument(*setting.flags, **options)


def _converter(setting: Setting) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            value = parse_text(setting, text)
            if not (setting.many or setting.repeat):
                value = check_value(setting, value)
            elif not text:
                raise ValueError("an empty string is no value")
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        reason = refusal(setting, value)
        if reason is not None:
            raise argparse.ArgumentTypeError(f"{text}: {reason}")
        return value

    return convert


def _help(setting: Setting) -> str:
    text = setting.help.replace("%", "%%")
    if setting.type == "boolean" and setting.default:
        text += f" On by default; {no_spellings(setting)[0]} turns it off."
    elif setting.type != "boolean" and setting.default is not None:
        text += f" Default: {setting.default}."
    if setting.refuse:
        text += f" Refused for now: {setting.refuse}."
    return text
