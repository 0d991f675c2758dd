"""A spec file that says something wrong is refused with its line."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from codegen.source import SpecError

THINKING = 'oneOf: [{type: "null"}, {$ref: "#/components/schemas/ThinkingOption"}]}'


def emit(name: str, spec_dir: Path) -> dict[str, str]:
    module: Any = import_module(f"codegen.{name}")
    result: dict[str, str] = module.emit(spec_dir)
    return result


def spoil(path: Path, old: str, new: str) -> int:
    """Replace the one place that says `old`; the line on which `new` starts."""
    text = path.read_text()
    assert text.count(old) >= 1, old
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.parametrize(
    ("emitter", "old", "new", "words"),
    [
        ("settings", "    minimum: 1\n", "    minimun: 1\n", "'minimun' is no key"),
        ("settings", "type: boolean", "type: bool", "unknown type 'bool'"),
        ("settings", "default: 16384", 'default: "16384"', "is no integer"),
        ("settings", "default: 16\n", "default: true\n", "is no integer"),
        ("settings", "default: bf16", "default: bf61", "not among the choices"),
        ("settings", "group: parallel", "group: paralel", "unknown group"),
        ("settings", "used_by: server", "used_by: sever", "engine or server"),
        ("settings", "name: server_port", "name: host", "declared twice"),
        ("settings", "name: server_port", "name: server-port", "underscores"),
        ("settings", "env: ATOM_API_KEY", "env: ATOM_API_KEYS", "not declared"),
        ("settings", "    default: false\n", "    default: null\n", "a boolean needs a default"),
        ("metrics", "kind: counter", "kind: count", "unknown kind"),
        ("metrics", "name: atom:requests\n", "name: atom:requests_total\n", "without _total"),
        ("metrics", "combine: ratio", "combine: product", "unknown combination"),
        ("metrics", "[0.005, 0.01,", "[0.01, 0.005,", "they ascend"),
        ("metrics", "engine: [num_running]", "engine: [a, b]", "two with combine"),
        ("openapi", "schemas/ModelList", "schemas/ModelsList", "leads nowhere"),
    ],
)
def test_faults_are_refused_with_their_line(spec_copy: Path, emitter: str, old: str, new: str, words: str) -> None:
    path = spec_copy / "spec" / f"{emitter}.yaml"
    line = spoil(path, old, new)
    with pytest.raises(SpecError) as caught:
        emit(emitter, spec_copy / "spec")
    assert words in str(caught.value)
    assert (caught.value.path, caught.value.line) == (path, line)


ORDERED_UNION = 'oneOf: [{$ref: "#/components/schemas/ThinkingOption"}, {$ref: "#/components/schemas/Tool"}]}'


@pytest.mark.parametrize(
    ("old", "new", "within", "words"),
    [
        ('        "415": {', '        "418": {', "    post:", "post /v1/chat/completions documents no 415"),
        ("      operationId: listModels\n", "", "    get:", "get /v1/models has no operationId"),
        (THINKING, ORDERED_UNION, "    ChatCompletionRequest:", "needs a discriminator"),
        (
            THINKING,
            "type: object, properties: {a: {type: string}}}",
            "    ChatCompletionRequest:",
            "of its own",
        ),
        ('schemas/ErrorResponse"}}}', 'schemas/ErrorBody"}}}', '        "400":', "status 400 has no error body"),
    ],
)
def test_a_breach_of_the_contracts_rules_is_refused(
    spec_copy: Path, old: str, new: str, within: str, words: str
) -> None:
    path = spec_copy / "spec/openapi.yaml"
    spoil(path, old, new)
    with pytest.raises(SpecError) as caught:
        emit("openapi", spec_copy / "spec")
    assert words in str(caught.value)
    assert path.read_text().splitlines()[caught.value.line - 1].startswith(within)
