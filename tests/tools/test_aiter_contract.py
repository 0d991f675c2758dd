"""The contract check: silent about a tree that keeps it, and red for every way of breaking it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from atom_spec.aiter import CALLABLES, PACKAGE, SHA256, VERSION, WHEEL

from tests.tools.fake_wheel import CONTRACT, FILES, SOURCE, TABLE, write_tree
from tools.aiter_contract import fetch
from tools.aiter_contract.__main__ import main
from tools.aiter_contract.check import BINDING_HEADER, PINNED, check
from tools.aiter_contract.tree import SourceTree

ROOT = Path(__file__).parents[2]
PINNED_WHEEL = fetch.cached_wheel()
needs_wheel = pytest.mark.skipif(PINNED_WHEEL is None, reason="the wheel has not been fetched: make aiter-contract")

NORM, CACHE = "aiter/ops/norm.py", "aiter/ops/cache.py"


def findings(folder: Path, **changes: tuple[str, str]) -> list[str]:
    files = {"norm": NORM, "cache": CACHE, "gemm": "aiter/gemm.py", "init": "aiter/__init__.py"}
    files |= {"header": BINDING_HEADER, "table": TABLE, "source": SOURCE}
    tree = write_tree(folder, {files[key]: change for key, change in changes.items()})
    return [str(finding) for finding in check(SourceTree(tree), CONTRACT)]


def test_a_tree_that_keeps_it(tmp_path: Path) -> None:
    assert findings(tmp_path) == []


def test_a_wheel_is_read_as_its_folder_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "fake.whl", "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    assert check(SourceTree(tmp_path / "fake.whl"), CONTRACT) == []


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        # The five that every move of the pin must show.
        ("norm", ("weight, epsilon,", "weight, eps,"), "aiter.norm: parameters differ (aiter/ops/norm.py:3): gone"),
        ("norm", ("input, weight, epsilon", "weight, input, epsilon"), "passes input where the source has weight"),
        ("norm", ("def norm(", "def norm_of("), "aiter.norm: there is no such callable"),
        ("norm", ("sensitive=0", "sensitive=1"), "sensitive is by default 1 (aiter/ops/norm.py:3), not by default 0"),
        ("table", ("bf16,8,16", "bf16,8,32"), "no kernel for qType bf16, Gqa 8, blkSz 16 (decoding)"),
        # And more.
        ("norm", ("sensitive=0", "sensitive"), "our call (input, weight, epsilon) does not bind"),
        ("norm", ("sensitive=0", "gemma=False, sensitive=0"), "new ['gemma']"),
        ("norm", ("sensitive=0", "**rest"), "takes any arguments"),
        ("cache", ("*, asm", "asm"), "parameter asm_layout is by default False"),
        ("cache", ("key, value", "value, key"), "aiter.write: our call (key, value, slots=) passes key where"),
        ("init", ("put as write", "put as writes"), "aiter.write: there is no such callable"),
        ("gemm", ("self, inp, weights", "self, weights, inp"), "aiter.gemm.tuned.mm: our call"),
        ("gemm", ("tuned = Tuned()", "tuned = None"), "aiter.gemm.tuned.mm: there is no such callable"),
        ("header", ('"norm_forward"', '"norm_fwd"'), "loads norm_forward, which"),
        ("header", ('py::arg("weight"), ', ""), "has 4 parameters, the compiled norm_forward 3"),
        ("table", ("a.co", "c.co"), "is in c.co, which is not there"),
        ("source", ("place / x", "place % x"), "no longer says"),
    ],
)  # fmt: skip
def test_every_planted_fault_is_named(tmp_path: Path, file: str, change: tuple[str, str], said: str) -> None:
    found = findings(tmp_path, **{file: change})
    assert any(said in finding for finding in found), found


def test_files_that_are_gone(tmp_path: Path) -> None:
    write_tree(tmp_path)
    for name in (TABLE, SOURCE, BINDING_HEADER):
        (tmp_path / name).unlink()
    found = {str(finding) for finding in check(SourceTree(tmp_path), CONTRACT)}
    assert {f"{TABLE}: there is no such kernel table", f"{SOURCE}: there is no such file"} <= found
    assert any("loads norm_forward" in finding for finding in found)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tree without any of it: one line for each callable, and a sum; what can not be read is said."""
    write_tree(tmp_path / "tree")
    assert main(["--tree", str(tmp_path / "tree")]) == 1
    out = capsys.readouterr().out
    assert "ERROR aiter.pa_fwd_asm: there is no such callable\n" in out
    assert f"{len(CALLABLES)} callables" in out
    assert main(["--tree", str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err
    assert main(["--tree", str(tmp_path / "tree"), "--show", "aiter.write", "aiter.gemm.tuned.mm"]) == 0
    assert (
        "aiter.write: key, value, slots, kind='auto', *, asm_layout=False  # aiter/ops/cache.py:1"
        in capsys.readouterr().out
    )


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        (Path(command[command.index("--dest") + 1]) / WHEEL).write_bytes(b"something else")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", download)
    with pytest.raises(fetch.FetchError, match=hashlib.sha256(b"something else").hexdigest()):
        fetch.fetch(tmp_path)
    assert not (tmp_path / WHEEL).exists()


def test_a_download_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "no such host")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(fetch.FetchError, match=f"{PACKAGE} {VERSION} can not be downloaded: no such host"):
        fetch.fetch(tmp_path)


def test_a_download_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: list[str], timeout: float, **_: object) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(fetch.FetchError, match="did not come within 600 s"):
        fetch.fetch(tmp_path)


def test_the_client_without_pip_is_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: "/bin/uv")
    assert fetch._client() == ["/bin/uv", "tool", "run", "pip"]
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(fetch.FetchError, match="neither pip nor uv"):
        fetch._client()


def test_the_extra_asks_for_the_pinned_version() -> None:
    assert f'rocm = ["{PACKAGE}=={VERSION}"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert len(SHA256) == 64 and VERSION in WHEEL


def test_reading_imports_nothing_of_aiter() -> None:
    """In a process of its own: the check of the pinned wheel leaves no trace of the library, nor of torch."""
    code = (
        "import sys; from tools.aiter_contract.__main__ import main; "
        f"main(['--tree', {str(ROOT)!r}]); "
        "sys.exit(any(name.partition('.')[0] in ('aiter', 'torch', 'triton') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr


class Edited(SourceTree):
    """The pinned wheel with one text replaced in one file."""

    def __init__(self, file: str, old: str, new: str) -> None:
        assert PINNED_WHEEL is not None
        super().__init__(PINNED_WHEEL)
        self.change = (file, old, new)

    def text(self, name: str) -> str:
        text, (file, old, new) = super().text(name), self.change
        if name != file:
            return text
        assert old in text
        return text.replace(old, new)


@needs_wheel
def test_the_pinned_wheel_keeps_it() -> None:
    assert PINNED_WHEEL is not None
    assert check(SourceTree(PINNED_WHEEL)) == []
    assert len(PINNED.callables) > 60 and PINNED.tables and PINNED.source_lines


_PA = "aiter_meta/hsa/gfx950/pa/pa_asm.csv"


@needs_wheel
@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("aiter/ops/attention.py", "K_QScale:", "K_Scale:", "aiter.pa_fwd_asm: parameters differ"),
        ("aiter/ops/activation.py", "out: Tensor, input: Tensor", "input: Tensor, out: Tensor", "out where the source"),
        (
            "aiter/ops/mha.py",
            "def flash_attn_varlen_func(",
            "def flash_attn(",
            "aiter.flash_attn_varlen_func: there is no",
        ),
        ("aiter/ops/cache.py", "asm_layout: bool = False", "asm_layout: bool = True", "asm_layout is by default True"),
        (_PA, "bf16,bf16,8,0,0,0,16", "bf16,bf16,8,0,0,0,32", "no kernel for qType bf16"),
    ],
)
def test_faults_planted_in_the_pinned_wheel(file: str, old: str, new: str, said: str) -> None:
    found = [str(finding) for finding in check(Edited(file, old, new))]
    assert any(said in finding for finding in found), found
