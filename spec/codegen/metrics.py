"""spec/metrics.yaml -> atom_spec/metrics.py and docs/metrics.md.

Owns what a metric may say; a wrong key, kind or bucket is an error with its line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from codegen.source import YamlFile
from codegen.text import format_python, markdown_header, markdown_table, python_header

_KEYS = ("name", "kind", "help", "labels", "buckets", "engine", "combine")
_KINDS = ("gauge", "counter", "histogram")
_COMBINATIONS = ("ratio", "difference")
_NAME = re.compile(r"atom:[a-z][a-z0-9_]*")

_CLASS = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. A counter's `name` is without `_total`, which the text format adds.

    engine: fields of EngineStats that it is read from; empty when the API process sets it. combine: what two fields
    make together (ratio is 0 when the second is 0). buckets: upper bounds of a histogram, without infinity.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    engine: tuple[str, ...] = ()
    combine: Literal["ratio", "difference"] | None = None


'''


def emit(spec_dir: Path) -> dict[str, str]:
    """The module with METRICS, and the table for people."""
    file = YamlFile(spec_dir / "metrics.yaml")
    metrics: list[dict[str, Any]] = file.data["metrics"]
    for index in range(len(metrics)):
        _check(file, index)
    text = python_header("spec/metrics.yaml", "Every Prometheus metric, as data.") + _CLASS
    text += "METRICS: tuple[Metric, ...] = (\n"
    for metric in metrics:
        arguments = (f"{key}={_literal(metric[key])}" for key in _KEYS if key in metric)
        text += f"    Metric({', '.join(arguments)}),\n"
    return {"metrics.py": format_python(text + ")\n"), "docs/metrics.md": _page(metrics)}


def _check(file: YamlFile, index: int) -> None:
    metric, at = file.data["metrics"][index], ("metrics", index)
    for key in metric:
        if key not in _KEYS:
            raise file.error(f"{key!r} is no key of a metric", *at, key)
    for key in ("name", "kind", "help"):
        if not isinstance(metric.get(key), str):
            raise file.error(f"{key!r} is missing", *at)
    doubled = metric["kind"] == "counter" and metric["name"].endswith("_total")
    if not _NAME.fullmatch(metric["name"]) or doubled:
        raise file.error(f"{metric['name']}: write atom:lower_case, a counter without _total", *at, "name")
    if any(other["name"] == metric["name"] for other in file.data["metrics"][:index]):
        raise file.error(f"{metric['name']} is declared twice", *at, "name")
    if metric["kind"] not in _KINDS:
        raise file.error(f"unknown kind {metric['kind']!r}", *at, "kind")
    buckets = metric.get("buckets", [])
    if bool(buckets) != (metric["kind"] == "histogram") or sorted(set(buckets)) != buckets:
        raise file.error("a histogram, and nothing else, has buckets, and they ascend", *at, "buckets")
    combine = metric.get("combine")
    if combine is not None and combine not in _COMBINATIONS:
        raise file.error(f"unknown combination {combine!r}", *at, "combine")
    if "engine" in metric and len(metric["engine"]) != (2 if combine else 1):
        raise file.error("engine names one field, or two with combine", *at, "engine")


def _literal(value: Any) -> str:
    return repr(tuple(value) if isinstance(value, list) else value)


def _page(metrics: list[dict[str, Any]]) -> str:
    rows = []
    for metric in metrics:
        name = metric["name"] + ("_total" if metric["kind"] == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in metric.get("labels", ()))
        rows.append((f"`{name}`", metric["kind"], labels, metric["help"]))
    text = markdown_header("spec/metrics.yaml") + "# Metrics\n\n"
    text += "`GET /metrics` answers in Prometheus' text format. Counters start at 0 with the server and only grow.\n\n"
    return text + markdown_table(("metric", "kind", "labels", "what it says"), rows)
