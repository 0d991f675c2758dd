"""The flags of `atom chat`, each in its dash and its underscore spelling; none can be abbreviated."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from atom.chat.client import api_base
from atom.chat.tools_file import load_tools

PROG = "atom chat"
DEFAULT_URL = "http://127.0.0.1:8000"
KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its name with dashes, how its value is read (raises ValueError), what it is for."""

    name: str
    read: Callable[[str], Any]
    metavar: str
    help: str
    default: Any = None


def temperature(text: str) -> float:
    """A number of at least 0."""
    value = float(text)
    if not 0.0 <= value < math.inf:
        raise ValueError("must be 0 or more")
    return value


def positive(text: str) -> int:
    """An integer above 0."""
    value = int(text)
    if value < 1:
        raise ValueError("must be 1 or more")
    return value


def api_key(text: str) -> str:
    """A key as a header can carry it. The message does not repeat it."""
    key = text.strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("a key is of printable ASCII characters")
    return key


FLAGS: tuple[Flag, ...] = (
    Flag("base-url", api_base, "URL", "Address of the server; a path such as /v1 is kept.", DEFAULT_URL),
    Flag("model", str, "NAME", "Model to ask for; without it, the first one that the server lists."),
    Flag("api-key", api_key, "KEY", f"Key of the server; without it, the value of {KEY_VARIABLE}."),
    Flag("system", str, "TEXT", "System prompt."),
    Flag("tools", load_tools, "FILE", "JSON file with a list of tools, as requests have it."),
    Flag("temperature", temperature, "NUMBER", "Sampling temperature; without it, the server's default."),
    Flag("max-tokens", positive, "NUMBER", "Tokens of an answer at most; without it, the server's default."),
)


def parse_flags(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, checked. Exits with 2 and a message for what can not be run."""
    parser = argparse.ArgumentParser(
        prog=PROG, description="Talk to a model behind an OpenAI-compatible server.", allow_abbrev=False
    )
    for flag in FLAGS:
        shown = f" [{flag.default}]" if flag.default else ""
        spellings = dict.fromkeys((f"--{flag.name}", f"--{flag.name.replace('-', '_')}"))
        parser.add_argument(
            *spellings, type=_checked(flag.read), default=flag.default, metavar=flag.metavar, help=flag.help + shown
        )
    parser.add_argument(
        "--thinking",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="Whether the model thinks first; without it, the model's default.",
    )
    options = parser.parse_args(argv)
    if not options.api_key:
        try:
            options.api_key = api_key(os.environ.get(KEY_VARIABLE, "")) or None
        except ValueError as error:
            parser.error(f"{KEY_VARIABLE}: {error}")
    return options


def _checked(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """`read`, with its ValueError's own words as the message."""

    def checked(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked
