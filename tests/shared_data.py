"""Where the data beside the checkout is. Tests that use it carry `@pytest.mark.shared` and are skipped without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("ATOM_SHARED") or Path(__file__).resolve().parents[1].parent / "shared")


def shared_path(*parts: str) -> Path:
    """A file or folder of the shared data; skips the test where it is absent."""
    path = ROOT.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is absent; ATOM_SHARED names the folder with the shared data")
    return path
