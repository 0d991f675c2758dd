"""Makes the package `codegen` importable, and gives a copy of the spec to spoil."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "spec"))


@pytest.fixture
def spec_copy(tmp_path: Path) -> Path:
    """A root folder that holds a copy of spec/ and nothing else."""
    shutil.copytree(ROOT / "spec", tmp_path / "spec", ignore=shutil.ignore_patterns("codegen", "__pycache__"))
    return tmp_path
