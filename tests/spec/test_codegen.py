"""The registry: deterministic, exact about drift, and fair to emitters that work."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from codegen import registry
from codegen.source import SpecError, YamlFile

ROOT = Path(__file__).resolve().parents[2]


def run_codegen(root: Path, *flags: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "spec/codegen"), "--root", str(root), *flags]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})


def derived(root: Path) -> dict[str, bytes]:
    files = [p for folder in ("generated", "docs") for p in (root / folder).rglob("*") if p.is_file()]
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in files}


def test_output_is_the_same_bytes_whatever_the_hash_seed(
    spec_copy: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert run_codegen(spec_copy, hash_seed="1").returncode == 0
    first = derived(spec_copy)
    other = tmp_path_factory.mktemp("other")
    (other / "spec").symlink_to(spec_copy / "spec")
    assert run_codegen(other, hash_seed="4242").returncode == 0
    assert derived(other) == first

    manifest = json.loads(first["generated/atom_spec/MANIFEST.json"])
    assert set(manifest["derived"]) == set(first) - {"generated/atom_spec/MANIFEST.json"}
    for path, digest in manifest["derived"].items():
        assert hashlib.sha256(first[path]).hexdigest() == digest, path

    # --check: silent when nothing differs, a diff and status 1 for one byte, a missing file, a file nobody emits.
    clean = run_codegen(other, "--check")
    assert (clean.returncode, clean.stdout) == (0, "")
    settings = other / "generated/atom_spec/settings.py"
    settings.write_text(settings.read_text().replace("8006", "8007"))
    (other / "docs/metrics.md").unlink()
    (other / "generated/atom_spec/left_over.py").write_text("")
    drift = run_codegen(other, "--check")
    assert drift.returncode == 1
    assert "--- a/generated/atom_spec/settings.py" in drift.stdout
    assert "-        default=8007," in drift.stdout
    assert "+        default=8006," in drift.stdout
    assert "+++ b/docs/metrics.md" in drift.stdout
    assert "left_over.py" in drift.stdout
    assert "8007" in settings.read_text(), "--check must not write"


def fake_emitter(name: str, result: Any) -> Any:
    def emit(spec_dir: Path) -> dict[str, str]:
        if isinstance(result, Exception):
            raise result
        return dict(result)

    return SimpleNamespace(__name__=name, emit=emit)


def test_an_emitter_that_fails_is_named_and_blocks_nobody(tmp_path: Path) -> None:
    emitters = [
        fake_emitter("codegen.good", {"good.py": "x = 1\n", "docs/good.md": "good\n"}),
        fake_emitter("codegen.broken", RuntimeError("no luck")),
        fake_emitter("codegen.wrong_spec", SpecError(Path("spec/wrong.yaml"), 7, "says nothing")),
    ]
    result = registry.run_emitters(emitters, tmp_path)
    assert result.files["generated/atom_spec/good.py"] == "x = 1\n"
    assert result.files["docs/good.md"] == "good\n"
    assert "codegen.broken" in result.errors[0]
    assert "no luck" in result.errors[0]
    assert result.errors[1] == "spec/wrong.yaml:7: says nothing"
    assert registry.MANIFEST not in result.files, "no manifest may vouch for an incomplete result"


def test_two_emitters_never_share_a_file(tmp_path: Path) -> None:
    emitters = [fake_emitter("codegen.a", {"same.py": "1\n"}), fake_emitter("codegen.b", {"same.py": "2\n"})]
    result = registry.run_emitters(emitters, tmp_path)
    assert result.files["generated/atom_spec/same.py"] == "1\n"
    assert "same.py is already emitted" in result.errors[0]


def test_stale_files_go_only_when_every_emitter_worked(tmp_path: Path) -> None:
    package = tmp_path / registry.PACKAGE
    package.mkdir(parents=True)
    (package / "old.py").write_text("")
    broken = registry.run_emitters([fake_emitter("codegen.broken", RuntimeError())], tmp_path)
    registry.write(tmp_path, broken.files)
    assert (package / "old.py").exists()
    whole = registry.run_emitters([fake_emitter("codegen.good", {"new.py": "\n"})], tmp_path)
    assert f"{registry.PACKAGE}/old.py" in registry.write(tmp_path, whole.files)
    assert not (package / "old.py").exists()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is given twice"),
        ("a: [1, 2\nb: 3\n", 2, ""),
        ("1.5: x\n", 1, "must be a string"),
    ],
)
def test_yaml_faults_have_a_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        YamlFile(path)
    assert caught.value.line == line
    assert words in str(caught.value)
