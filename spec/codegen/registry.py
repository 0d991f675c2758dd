"""Finding the emitters, running them, and comparing or writing what they return.

An emitter is any module of this folder that has a function `emit(spec_dir: Path) -> dict[str, str]`. Its result maps a
file to the file's whole text: `formats.py` is written to `generated/atom_spec/formats.py`, `docs/formats.md` to that
path of the repository. To add a contract, drop a module here; nothing else needs to know. Two emitters never share a
file, and an emitter that fails does not keep the others from writing theirs.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import pkgutil
import traceback
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from codegen.source import SpecError

PACKAGE = "generated/atom_spec"
MANIFEST = f"{PACKAGE}/MANIFEST.json"
PACKAGE_DOCSTRING = (
    '"""The contracts of `spec/` as Python. Derived by `make generate`; never edited. Imports nothing of atom."""\n'
)


class Emitter(Protocol):
    """The interface of an emitter module."""

    __name__: str

    def emit(self, spec_dir: Path) -> dict[str, str]:
        """File name to text. Raises SpecError for a spec file that is wrong."""


@dataclass
class Result:
    """Everything the emitters returned, by path from the repository's root, and what went wrong."""

    files: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def find_emitters(folder: Path) -> list[Emitter]:
    """The emitter modules of `folder` (the package `codegen`), by name."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_"))
    modules = [import_module(f"codegen.{name}") for name in names]
    return [cast("Emitter", module) for module in modules if hasattr(module, "emit")]


def run_emitters(emitters: list[Emitter], spec_dir: Path) -> Result:
    """Run every emitter; the manifest is added when all of them succeeded."""
    result = Result(files={f"{PACKAGE}/__init__.py": PACKAGE_DOCSTRING, f"{PACKAGE}/py.typed": ""})
    for emitter in emitters:
        try:
            emitted = emitter.emit(spec_dir)
        except SpecError as error:
            result.errors.append(str(error))
            continue
        except Exception:
            result.errors.append(f"{emitter.__name__} failed\n{traceback.format_exc()}")
            continue
        for name, text in sorted(emitted.items()):
            path = name if name.startswith("docs/") else f"{PACKAGE}/{name}"
            if path in result.files:
                result.errors.append(f"{emitter.__name__}: {path} is already emitted by another module")
            else:
                result.files[path] = text
    if not result.errors:
        result.files[MANIFEST] = _manifest(result.files, spec_dir)
    return result


def stale_files(root: Path, files: dict[str, str]) -> list[str]:
    """Modules in the generated package that no emitter returns any more."""
    present = (p.relative_to(root).as_posix() for p in (root / PACKAGE).rglob("*") if p.is_file())
    return sorted(p for p in present if p not in files and "__pycache__" not in p)


def diff(root: Path, files: dict[str, str]) -> str:
    """A unified diff from what is on disk to what the emitters return; empty when they agree."""
    parts: list[str] = []
    for path in sorted(files):
        on_disk = root / path
        old = on_disk.read_bytes().decode("utf-8", "replace") if on_disk.exists() else ""
        if on_disk.exists() and old == files[path]:
            continue
        lines = difflib.unified_diff(
            old.splitlines(keepends=True), files[path].splitlines(keepends=True), f"a/{path}", f"b/{path}"
        )
        parts += [line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines]
        if not on_disk.exists() and not files[path]:
            parts.append(f"--- a/{path}\n+++ b/{path} (an empty file is missing)\n")
    parts += [f"--- a/{path}\n+++ /dev/null (no emitter returns it)\n" for path in stale_files(root, files)]
    return "".join(parts)


def write(root: Path, files: dict[str, str]) -> list[str]:
    """Write what differs and return the paths that changed. Stale files go once the manifest vouches for the rest."""
    changed: list[str] = []
    for path, text in files.items():
        target = root / path
        if target.exists() and target.read_bytes() == text.encode():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
        changed.append(path)
    if MANIFEST in files:
        for path in stale_files(root, files):
            (root / path).unlink()
            changed.append(path)
    return changed


def _manifest(files: dict[str, str], spec_dir: Path) -> str:
    sources = {
        f"spec/{p.relative_to(spec_dir).as_posix()}": _sha256(p.read_bytes()) for p in sorted(spec_dir.rglob("*.yaml"))
    }
    derived = {path: _sha256(files[path].encode()) for path in sorted(files)}
    return json.dumps({"sources": sources, "derived": derived}, indent=1) + "\n"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
