"""The pinned wheel as a file: downloaded once by the package client of this machine, never installed.

Owns the cache folder and the check of the wheel's hash.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from atom_spec.aiter import PACKAGE, SHA256, VERSION, WHEEL

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "aiter"
TIMEOUT = 600


class FetchError(Exception):
    """No wheel, or one that is not the pinned one. `str()` says what to do."""


def cached_wheel(folder: Path = CACHE) -> Path | None:
    """The wheel, if it has been fetched and is the pinned one."""
    path = folder / WHEEL
    return path if path.is_file() and _sha256(path) == SHA256 else None


def fetch(folder: Path = CACHE) -> Path:
    """The wheel, downloaded unless it is there. Raises FetchError."""
    path = cached_wheel(folder)
    if path is not None:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    command = [*_client(), "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir"]
    command += ["--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise FetchError(f"{PACKAGE} {VERSION} did not come within {TIMEOUT} s") from None
    wheel = folder / WHEEL
    if not wheel.is_file():
        raise FetchError(f"{PACKAGE} {VERSION} can not be downloaded: {done.stderr.strip() or 'no wheel came'}")
    if _sha256(wheel) != SHA256:
        found = _sha256(wheel)
        wheel.unlink()
        raise FetchError(f"{WHEEL} has SHA-256 {found}, the contract pins {SHA256} (spec/aiter/package.yaml)")
    return wheel


def _client() -> list[str]:
    """pip, as this interpreter has it or as uv can run it."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv is None:
        raise FetchError("neither pip nor uv is there to download the wheel with")
    return [uv, "tool", "run", "pip"]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
