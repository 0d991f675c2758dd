"""The safetensors files of a model folder. Owns finding them; reads no tensor."""

from __future__ import annotations

import json
from pathlib import Path

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


class WeightsError(ValueError):
    """The weights of a model are absent, incomplete or do not fit."""


def find_weight_files(folder: Path) -> list[Path]:
    """The files to read, in order: those of the index, else model.safetensors, else every safetensors file.

    Raises WeightsError when there is none, or when the index names a file that is not there.
    """
    index = folder / INDEX
    if index.is_file():
        return _indexed(index)
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    found = sorted(folder.glob("*.safetensors"))
    if found:
        return found
    others = sorted(path.name for pattern in ("*.bin", "*.pt", "*.gguf") for path in folder.glob(pattern))
    hint = f"; {others[0]} is in a format that is not read, convert it to safetensors" if others else ""
    raise WeightsError(f"{folder} holds no safetensors{hint}")


def _indexed(index: Path) -> list[Path]:
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise WeightsError(f"{index} is no index of safetensors: {error!r}") from error
    files = [index.parent / name for name in sorted(names)]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        raise WeightsError(
            f"{index.name} names {len(missing)} of {len(files)} files that are not there: {', '.join(missing)}"
        )
    return files
