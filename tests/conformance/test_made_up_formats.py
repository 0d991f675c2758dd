"""Two formats that nobody speaks, each one YAML file: they pass the whole suite, and no Python knows them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from conformance.profiles import Profile
from conformance.subjects import all_subjects
from conformance.suite import run_subject

ROOT = Path(__file__).parents[2]
QUICK = Profile("quick", num_cases=80, num_truncated=4, num_characters=2_000)
TAGGED = r"""
name: lantern
title: A made-up tagged format
detect:
  - {order: 9001, all: ["[[task"]}
dialects: [think]
tokens: {skip_special_tokens: false}
undeclared: release
ids: random
grammars:
  - shape: tagged
    typing: {default: string, literals: [json]}
    values: {string: [raw], boolean: [json], "null": [json], number: [json], object: [json], array: [json]}
    forms:
      - name: canonical
        section: "[[tasks]]\n{calls}\n[[/tasks]]"
        call: "[[task {name}]]\n{arguments}[[/task]]"
        argument: "[[with {key}]]{value}[[/with]]\n"
        call_separator: "\n"
        many_calls: true
      - name: no_wrapper
        section: "{calls}"
        many_calls: false
examples:
  - text: "So: [[tasks]]\n[[task look]]\n[[with at]]the sea[[/with]]\n[[/task]]\n[[/tasks]]"
    content: "So: "
    calls: [{name: look, arguments: {at: the sea}}]
not_calls:
  - "Begin with [[tasks]] and end with its closer."
  - "A task is [[task NAME]] and what it is done with."
"""
JSON = r"""
name: parcel
title: A made-up JSON format
detect:
  - {order: 9002, all: ["@@parcel"]}
dialects: [bracket_think]
tokens: {skip_special_tokens: false}
undeclared: release
ids: random
grammars:
  - shape: json
    object: {arguments_required: true, unknown: ignore}
    forms:
      - name: canonical
        section: "@@parcel {calls} @@end"
        call: '{"do": {name|json}, "using": {arguments}}'
      - name: on_lines
        section: "@@parcel\n{calls}\n@@end"
        call: '{"do": {name|json}, "using": {arguments}}'
        call_separator: "\n"
        many_calls: true
examples:
  - text: 'Sent: @@parcel {"do": "look", "using": {"at": "@@end"}} @@end.'
    content: "Sent: ."
    calls: [{name: look, arguments: {at: "@@end"}}]
not_calls:
  - "A @@parcel holds one object."
"""


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The generated module of a spec folder that holds the two files and the schema, and nothing else."""
    folder = tmp_path_factory.mktemp("spec")
    (folder / "formats").mkdir()
    shutil.copy(ROOT / "spec/formats/format.schema.json", folder / "formats")
    for name, text in (("lantern", TAGGED), ("parcel", JSON)):
        (folder / "formats" / f"{name}.yaml").write_text(text, encoding="utf-8")
    sys.path.insert(0, str(ROOT / "spec"))
    try:
        from codegen.formats import emit
    finally:
        sys.path.remove(str(ROOT / "spec"))
    module = ModuleType("made_up_formats")
    sys.modules[module.__name__] = module
    exec(emit(folder)["formats.py"], module.__dict__)
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize("name", ["lantern", "parcel"])
def test_a_made_up_format_passes_the_suite_without_python(made_up: ModuleType, name: str) -> None:
    subject = next(one for one in all_subjects(made_up.FORMATS) if one.name == name)
    tally = run_subject(subject, QUICK, 3).tally
    findings = [cell.finding for cell in tally.cells.values() if cell.finding]
    assert not findings, findings[0]
    assert tally.num_cases["calls"] >= 20


def test_no_python_names_the_made_up_formats() -> None:
    own = {Path(__file__)}
    sources = [
        path for folder in ("atom", "conformance", "generated", "tests") for path in (ROOT / folder).rglob("*.py")
    ]
    assert not [path for path in sources if path not in own and "lantern" in path.read_text(encoding="utf-8")]
