"""A dialect file that says something wrong is refused with its line; the tables say what the files say."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from atom_spec.dialects import DIALECTS
from codegen.source import SpecError

from tests.spec.conftest import ROOT


def emit(spec_dir: Path) -> dict[str, str]:
    module: Any = import_module("codegen.dialects")
    result: dict[str, str] = module.emit(spec_dir)
    return result


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('start: "<mm:think>"', 'begin: "<mm:think>"', "unknown key 'begin'"),
        ('start: "<mm:think>"', "start: 3", "start must be a str"),
        ('start: "<mm:think>"', 'start: "</mm:think>"', "two different markers"),
        ("name: mm_think", "name: mm-think", "must be the file's"),
        ("order: 20", "order: 50", "two dialects have this order"),
        ("order: 20", "order: first", "order has the wrong type"),
        (
            "  - {keyword: thinking_mode, disable: disabled, enable: enabled}",
            "  - {keyword: thinking_mode}",
            "keyword, disable",
        ),
        ('any: ["<mm:think>"', 'any: [1, "<mm:think>"', "list of texts"),
        ("  - {text: ", "  - {txt: ", "must be a mapping with text"),
    ],
)
def test_faults_are_refused_with_their_line(spec_copy: Path, old: str, new: str, words: str) -> None:
    path = spec_copy / "spec" / "formats" / "reasoning" / "mm_think.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError, match=words) as caught:
        emit(spec_copy / "spec")
    assert caught.value.path == path
    assert caught.value.line == text[: text.index(old)].count("\n") + 1


def test_what_is_missing_is_named(spec_copy: Path) -> None:
    path = spec_copy / "spec" / "formats" / "reasoning" / "mm_think.yaml"
    data = yaml.safe_load(path.read_text())
    del data["evidence"]
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(SpecError, match="evidence is missing"):
        emit(spec_copy / "spec")
    path.write_text("- 1")
    with pytest.raises(SpecError, match="a dialect is a mapping"):
        emit(spec_copy / "spec")
    path.write_text(
        yaml.safe_dump(
            {
                **yaml.safe_load("{name: mm_think, title: x, in_format: true, start: a}"),
                "evidence": {"order": 1, "any": ["x"]},
                "switches": [],
                "effort_keywords": [],
                "examples": [],
            }
        )
    )
    with pytest.raises(SpecError, match="has no markers"):
        emit(spec_copy / "spec")


def test_the_tables_are_in_the_order_of_detection() -> None:
    assert emit(ROOT / "spec")["dialects.py"] == (ROOT / "generated" / "atom_spec" / "dialects.py").read_text()
    orders = [dialect.order for dialect in DIALECTS.values()]
    assert orders == sorted(orders)
    assert all(dialect.name == name and dialect.evidence for name, dialect in DIALECTS.items())
    assert DIALECTS["think"].switches[0].off is False
