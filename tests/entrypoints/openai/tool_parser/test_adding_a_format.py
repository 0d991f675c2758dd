"""The formats that docs/adding-a-format.md makes up work as written, from the file to the events."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from atom.entrypoints.openai.tool_parser.registry import detect_format
from tests.entrypoints.openai.tool_parser.reading import TOOLS, read_every_way

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/adding-a-format.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```yaml\n(# spec/formats/(?P<name>\w+)\.yaml\n.*?)```", PAGE, re.DOTALL))
FILES = {name: text for text, name in FILES.items()}


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module that is generated from the page's files."""
    folder = tmp_path_factory.mktemp("spec") / "formats"
    folder.mkdir()
    shutil.copy(ROOT / "spec/formats/format.schema.json", folder)
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    sys.path.insert(0, str(ROOT / "spec"))
    try:
        from codegen.formats import emit
    finally:
        sys.path.remove(str(ROOT / "spec"))
    module = ModuleType("formats_of_the_page")
    sys.modules[module.__name__] = module
    exec(emit(folder.parent)["formats.py"], module.__dict__)
    yield module
    del sys.modules[module.__name__]


def test_the_page_has_a_tagged_and_a_json_format() -> None:
    assert list(FILES) == ["beacon", "envelope"]


@pytest.mark.parametrize("name", ["beacon", "envelope"])
def test_a_format_of_the_page_reads_its_examples(made_up: ModuleType, name: str) -> None:
    spec = made_up.FORMATS[name]
    for example in spec.examples:
        answer = read_every_way(spec, example.text)
        assert answer.parsed == [(tool, json.loads(arguments)) for tool, arguments in example.calls]
        assert answer.content == example.content
        assert read_every_way(spec, example.text, []).content == example.text
    for text in spec.not_calls:
        assert read_every_way(spec, text, TOOLS).content == text


def test_every_form_of_the_tagged_format_is_read(made_up: ModuleType) -> None:
    spec = made_up.FORMATS["beacon"]
    for form in spec.forms:
        argument = form.argument.replace("{key}", "city").replace("{value}", "Oslo; @end of it")
        call = form.call.replace("{name}", "get_weather").replace("{arguments}", argument)
        answer = read_every_way(spec, f"So {form.section.replace('{calls}', call)}")
        assert answer.content.startswith("So ")
        assert [name for name, _ in answer.calls] == ["get_weather"], form.name


def test_the_template_that_writes_it_is_recognised(made_up: ModuleType) -> None:
    formats = made_up.FORMATS.values()
    found = detect_format("Write @call NAME and @set KEY: VALUE; for each parameter.", formats)
    assert found is not None
    assert found.name == "beacon"
    assert detect_format("no tools here", formats) is None
