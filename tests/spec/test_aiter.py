"""spec/aiter: a slip in a signature, a call, a table or a line of source is an error with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from codegen import aiter
from codegen.source import SpecError


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("layers.yaml", "signature: out, input\n", "signature: out, , input\n", "is no parameter list"),
        ("layers.yaml", "signature: out, input\n", "signature: out, '*input'\n", "is no parameter list"),
        ("layers.yaml", "- out, input\n", "- out, inputs\n", "the signature has no inputs"),
        ("layers.yaml", "- out, input\n", "- out=, input\n", "positional arguments come before keywords"),
        ("layers.yaml", "    caller: norm\n", "    callers: norm\n", "a callable has signature, calls"),
        ("attention.yaml", "file_column: knl_file", "column: knl_file", "a table has file_column, path, rows, why"),
        ("cache.yaml", "    why: the flash layout\n", "", "a line of source has path, text, why"),
        ("package.yaml", "package: amd-aiter\n", "", "a package has architectures, package"),
    ],
)
def test_a_slip_has_its_line(spec_copy: Path, file: str, old: str, new: str, said: str) -> None:
    path = spec_copy / "spec/aiter" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SpecError, match=said) as caught:
        aiter.emit(spec_copy / "spec")
    assert caught.value.path == path
    assert caught.value.line >= 1


def test_any_arguments_can_not_be_declared(spec_copy: Path) -> None:
    path = spec_copy / "spec/aiter/layers.yaml"
    path.write_text(path.read_text("utf-8").replace("signature: out, input\n", 'signature: "*args"\n', 1), "utf-8")
    with pytest.raises(SpecError, match="only plain and keyword-only"):
        aiter.emit(spec_copy / "spec")
