"""From the name of a model to a folder in Hugging Face's layout, and the JSON files in it.

Owns the search: a folder, the model that ships with the package, an id of the Hugging Face hub. Reads no weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from atom import builtin_model

HUB_ID = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?")
# Other weight formats of the same model are not fetched.
HUB_FILES = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt", "*.py", "encoding/*"]


class ModelNotFoundError(ValueError):
    """The model names no folder, no hub id that can be reached, and not the model that ships."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Where a model's files are, and the chat template that goes with its name, if the name asks for one."""

    path: Path
    chat_template: Path | None = None


def find_model(model: str) -> ModelFolder:
    """The folder of `model`; a hub id is downloaded (or found in the cache). Raises ModelNotFoundError."""
    path = Path(model).expanduser()
    if path.is_dir():  # wins over the other two, as with other tools
        if not (path / "config.json").is_file():
            raise ModelNotFoundError(f"{path} is a folder without config.json, so it holds no model")
        return ModelFolder(path.resolve())
    if builtin_model.is_builtin(model):
        found = builtin_model.resolve(model)
        return ModelFolder(found.path, found.chat_template)
    if path.exists() or path.is_absolute() or model.startswith((".", "~")) or not HUB_ID.fullmatch(model):
        raise ModelNotFoundError(f"{model} is no folder with a model")
    return ModelFolder(_download(model))


def _download(model: str) -> Path:
    import huggingface_hub  # takes 0.2 s, and only a hub id needs it

    try:
        return Path(huggingface_hub.snapshot_download(model, allow_patterns=HUB_FILES))
    except Exception as error:  # the hub's client raises its own, httpx's and the operating system's errors
        reason = str(error).strip().splitlines()
        raise ModelNotFoundError(
            f"{model} is no folder here, and it can not be had from the Hugging Face hub"
            f" ({type(error).__name__}: {reason[0] if reason else 'no reason given'})."
            " Give --model a folder that holds config.json and safetensors, or atom-tiny, which ships with ATOM."
        ) from error


def read_json_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file of a model, None when there is no such file. ValueError names the file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} does not hold a JSON object")
    return value
