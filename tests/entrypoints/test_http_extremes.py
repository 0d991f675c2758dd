"""The least and the largest value of every sampling field: the answer is there, and keeps to its grammar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from conformance.http.server import started

CONTRACT = yaml.safe_load((Path(__file__).parents[2] / "spec/openapi.yaml").read_text(encoding="utf-8"))
SCHEMA = {
    "type": "object",
    "properties": {"wet": {"type": "boolean"}},
    "required": ["wet"],
    "additionalProperties": False,
}
REQUEST: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Is it raining?"}],
    "max_tokens": 32,
    "response_format": {"type": "json_schema", "json_schema": {"name": "rain", "schema": SCHEMA}},
}
LEAST_FLOAT = 5e-324


def extremes() -> Iterator[tuple[str, float]]:
    """Every number that changes how a token is chosen, at both ends of its range."""
    for field, schema in CONTRACT["components"]["schemas"]["ChatCompletionRequest"]["properties"].items():
        if schema.get("type") == ["number", "null"]:
            least = schema["minimum"] if "minimum" in schema else schema["exclusiveMinimum"] + LEAST_FLOAT
            yield from ((field, least), (field, schema["maximum"]))
    yield from (("temperature", LEAST_FLOAT), ("min_p", LEAST_FLOAT), ("top_k", 1), ("top_k", 2**31 - 1))
    yield from (("seed", -(2**63)), ("seed", 2**63 - 1))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with started(tmp_path_factory.mktemp("server")) as server, httpx.Client(base_url=server.url, timeout=120) as client:
        yield client
        assert server.faults() == []


def ask(client: httpx.Client, **fields: Any) -> None:
    response = client.post("/v1/chat/completions", json={**REQUEST, **fields})
    assert response.status_code == 200, (fields, response.text)
    content = "".join(response.json()["choices"][0]["message"]["content"].split())  # white space is free
    # The limit may have cut it.
    assert any(whole.startswith(content) for whole in ('{"wet":true}', '{"wet":false}')), (fields, content)


@pytest.mark.parametrize(("field", "value"), [*extremes()])
def test_one_extreme(client: httpx.Client, field: str, value: float) -> None:
    ask(client, **{field: value})


def test_all_extremes_at_once(client: httpx.Client) -> None:
    bias = {str(token): 100 if token % 2 else -100 for token in range(100)}
    for end in (0, 1):
        values = {field: value for place, (field, value) in enumerate(extremes()) if place % 2 == end}
        ask(client, **{**values, "temperature": 2, "logit_bias": bias})
        ask(client, **{**values, "repetition_penalty": 0.01, "logit_bias": bias})
