"""The small model that ships with ATOM: where its files are, and which wire format it is to speak.

Owns: the names `atom-tiny` and `atom-tiny@FORMAT` and the paths behind them. Does not know: how models are loaded or
templates rendered.
Imports nothing but the standard library, so that every layer may ask it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NAME = "atom-tiny"
DEFAULT_FORMAT = "qwen"
FORMATS: tuple[str, ...] = ("qwen", "hermes", "glm", "kimi", "kimi_k3", "minimax", "dsml")
NAMES: tuple[str, ...] = (NAME, *(f"{NAME}@{name}" for name in FORMATS))

_ROOT = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class BuiltinModel:
    """`path`: a Hugging Face folder. `chat_template`: the Jinja file of `format`, used instead of the folder's own."""

    path: Path
    chat_template: Path
    format: str


def is_builtin(name: str) -> bool:
    """True for `atom-tiny` and for `atom-tiny@anything`, also where the format is unknown (`resolve` says so then)."""
    return name == NAME or name.startswith(f"{NAME}@")


def resolve(name: str) -> BuiltinModel:
    """The files behind a built-in name. ValueError for another name or an unknown format; it lists the formats."""
    if not is_builtin(name):
        raise ValueError(f"{name!r} is not a built-in model; the built-in models are {', '.join(NAMES)}")
    _, _, format_name = name.partition("@")
    if name == NAME:
        format_name = DEFAULT_FORMAT
    if format_name not in FORMATS:
        raise ValueError(f"{NAME} does not speak {format_name!r}; its formats are {', '.join(FORMATS)}")
    return BuiltinModel(_ROOT / "atom_tiny", _ROOT / "chat_templates" / f"{format_name}.jinja", format_name)
