"""docs/api.md: complete, and a contract with a gap is refused with its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from atom_spec.routes import ROUTES
from codegen.api_page import emit
from codegen.api_types import default_text, range_text, type_text
from codegen.source import SpecError

ROOT = Path(__file__).resolve().parents[2]
CONTRACT: dict[str, Any] = yaml.safe_load((ROOT / "spec/openapi.yaml").read_text(encoding="utf-8"))
TEXTS = {"type": "array", "maxItems": 4, "items": {"type": "string", "minLength": 1}}
TOOL = {"$ref": "#/components/schemas/Tool"}


@pytest.fixture(scope="module")
def page() -> str:
    return emit(ROOT / "spec")["docs/api.md"]


def section(page: str, title: str) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_operation_has_its_section_with_every_field_status_and_difference(page: str) -> None:
    for route in ROUTES:
        if route.method == "HEAD":
            continue
        text = section(page, f"{route.method} {route.path}")
        operation = CONTRACT["paths"][route.path][route.method.lower()]
        assert operation["summary"] in text
        assert all(f"| {status} |" in text for status in route.statuses if status != 200), route
        if route.request is not None:
            fields = CONTRACT["components"]["schemas"][route.request]["properties"]
            assert [field for field in fields if f"`{field}`" not in text] == []
        for differences in operation.get("x-differences", {}).values():
            assert all(f"- {difference}\n" in text + "\n" for difference in differences)
        for refusal in CONTRACT["x-refusals"].values():
            assert (refusal["when"] in text) == (operation["operationId"] in refusal["operations"])


def test_the_generating_operations_state_their_differences() -> None:
    for route in ROUTES:
        if route.streams:
            api = "Anthropic" if route.module == "anthropic" else "OpenAI"
            assert CONTRACT["paths"][route.path]["post"]["x-differences"][api]


def test_every_link_leads_somewhere(page: str) -> None:
    titles = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    anchors = [re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles]
    in_operations = [anchor for anchor in anchors if anchor not in ("request", "answer", "events", "errors")]
    links = set(re.findall(r"\]\(#([^)]*)\)", page))
    assert links - set(anchors) == set()
    # The rest are headings that come once an operation.
    assert {anchor for anchor in in_operations if not anchor.startswith("differences-from")} - links == set()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("description: Variables for the chat template.", "examples: []", "chat_template_kwargs has no description"),
        ("operations: [getAsset, headAsset]", "operations: [getAssets]", "there is no operation getAssets"),
    ],
)
def test_a_gap_is_an_error_with_its_line(spec_copy: Path, old: str, new: str, complaint: str) -> None:
    path = spec_copy / "spec/openapi.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(SpecError, match=complaint) as caught:
        emit(spec_copy / "spec")
    line = text[: text.index(old)].count("\n") + 1
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("schema", "kind", "limits", "default"),
    [
        ({"type": ["integer", "null"], "minimum": 1, "maximum": 9, "default": 3}, "integer", "1 to 9", "`3`"),
        ({"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1}, "number", "above 0, 1 at most", ""),
        (TEXTS, "list of strings", "4 items at most, each not empty", ""),
        ({"oneOf": [{"type": "null"}, {"type": "string"}, TOOL]}, "string or [Tool](#tool)", "", ""),
        ({"type": ["string", "null"], "enum": ["a", None]}, "`a`", "", ""),
        ({"type": "null"}, "null", "", ""),
        ({"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}, "integer", "", ""),
        ({"type": "boolean", "default": False}, "boolean", "", "`false`"),
    ],
)
def test_a_schema_in_words(schema: dict[str, Any], kind: str, limits: str, default: str) -> None:
    assert type_text(schema, is_request=True) == kind
    assert range_text(schema) == limits
    assert default_text(schema) == default


def test_an_answer_says_where_null_may_come() -> None:
    assert type_text({"oneOf": [{"type": "null"}, {"type": "string"}]}, is_request=False) == "string or null"
