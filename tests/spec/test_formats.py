"""A format file that says something wrong is refused with its line; what a form means is derived from it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from atom_spec.formats import FORMATS, FormatSpec, Tag
from codegen.source import SpecError


def emit(spec_dir: Path) -> str:
    module: Any = import_module("codegen.formats")
    result: dict[str, str] = module.emit(spec_dir)
    return result["formats.py"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("undeclared: release", "undeclared: maybe", "'maybe' is not one of"),
        ("ids: random", "id: random", "Additional properties are not allowed"),
        ("name: qwen", "name: kwen", "the name must be the file's"),
        ("aliases: [qwen3_coder", "aliases: [glm", "the name 'glm' is taken"),
        ("{order: 60,", "{order: 70,", "another format is detected at order 70"),
        ("typing: {default: string", "typing: {default: text", "'text' is not one of"),
        ('section: "<tool_call>{calls}', 'section: "<tool_call>{cals}', r"unknown hole \{cals\}"),
        (
            'section: "<tool_call>{calls}',
            'section: "<tool_call>',
            r"form 'one_line': \{calls\} must stand in it exactly",
        ),
        ('argument: "<parameter={key}>{value}', 'argument: "{key}>{value}', "must begin with a literal"),
        ("- name: one_line", "- name: canonical", "form 'canonical' is there twice"),
    ],
)
def test_faults_are_refused_with_their_line(spec_copy: Path, old: str, new: str, words: str) -> None:
    path = spec_copy / "spec" / "formats" / "qwen.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SpecError, match=words) as caught:
        emit(spec_copy / "spec")
    assert caught.value.path.parent == path.parent
    expected = text[: text.index(old)].count("\n") + 1
    if "begin with a literal" in words:  # a fault of the forms together
        expected = text[: text.index("forms:")].count("\n") + 1
    if caught.value.path == path:
        assert abs(caught.value.line - expected) <= (1 if "Additional" in words else 0) or "Additional" in words
    else:  # two files that don't go together: the later one is named
        assert "taken" in words or "order" in words


def test_a_json_call_needs_its_keys(spec_copy: Path) -> None:
    path = spec_copy / "spec" / "formats" / "hermes.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{name|json}", '"x"'), encoding="utf-8")
    with pytest.raises(SpecError, match="needs a key for"):
        emit(spec_copy / "spec")
    path.write_text(text.replace('call: \'{"name"', "call: '{name\"", 1), encoding="utf-8")
    with pytest.raises(SpecError, match="must be JSON"):
        emit(spec_copy / "spec")


def test_markers_derive_from_the_forms() -> None:
    [grammar] = FORMATS["dsml"].grammars
    by_opener = {tag.open: tag.close for tag in grammar.calls}
    assert by_opener['<｜DSML｜invoke name="{name}"{ws}/>'] == ()
    assert by_opener['<｜DSML｜invoke name="{name}">'] == ("</｜DSML｜invoke>",)
    assert set(by_opener['<invoke name="{name}">']) == {"</invoke>", "</｜DSML｜invoke>"}
    assert grammar.blocks[0] == Tag("", ())
    assert grammar.is_bare
    assert FORMATS["kimi_k3"].grammars[0].blocks == (
        Tag('<|open|>json type="object"<|sep|>', ("<|close|>json<|sep|>",)),
    )
    keys = FORMATS["hermes"].grammars[0].object_keys
    assert keys is not None
    assert (keys.name, keys.arguments, keys.other) == (("name",), ("arguments", "parameters"), ("type", "id"))
    assert [one.separator for one in FORMATS["mistral"].grammars] == [",", ""]
    assert FORMATS["llama3_json"].grammars[0].at_start


@pytest.mark.parametrize("spec", FORMATS.values(), ids=FORMATS)
def test_every_table_is_complete(spec: FormatSpec) -> None:
    assert spec.markers
    assert spec.max_hold == max(map(len, spec.markers)) - 1
    assert len(spec.not_calls) >= 1
    for variant in spec.variants or (None,):
        forms = spec.forms_of(variant)
        assert forms[0].name == "canonical"
        assert spec.writing_of(variant).values.keys() == {"string", "boolean", "null", "number", "object", "array"}
    assert spec.dialects_of() == () or all(spec.dialects_of(variant) for variant in spec.variants)
    for form in spec.forms:
        assert "{ws}" not in form.section + form.call + (form.argument or "")
