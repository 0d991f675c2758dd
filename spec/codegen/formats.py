"""spec/formats/*.yaml to generated/atom_spec/formats.py and docs/formats.md.

Owns the checks on a format file (its schema, its forms, the formats together) and the text of the tables; every
complaint names a line. What a form means to a reader is derived in format_derive. Knows no reader.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codegen.format_build import build_format
from codegen.format_page import page
from codegen.format_tables import FormatSpec
from codegen.source import YamlFile
from codegen.text import format_python, python_header

SOURCES = "spec/formats/*.yaml"
_CUT = "# ---- copied from here on ----\n"


def emit(spec_dir: Path) -> dict[str, str]:
    """The table of every format, in the order of detection. Raises SpecError."""
    folder = spec_dir / "formats"
    schema = json.loads((folder / "format.schema.json").read_text(encoding="utf-8"))
    files = [YamlFile(path) for path in sorted(folder.glob("*.yaml"))]
    specs = [build_format(file, schema) for file in files]
    _check_together(files, specs)
    specs.sort(key=lambda spec: min(one.order for one in spec.detect))
    types = Path(__file__).with_name("format_tables.py").read_text(encoding="utf-8").split(_CUT)[1]
    table = "".join(f"{spec.name!r}: {literal(spec)},\n" for spec in specs)
    source = f"from __future__ import annotations\n\n{types}\n\nFORMATS: dict[str, FormatSpec] = {{\n{table}}}\n"
    header = python_header(SOURCES, "Wire formats of tool calls: grammar, detection, forms, examples.")
    return {"formats.py": format_python(header + source), "docs/formats.md": page(specs, SOURCES)}


def literal(value: Any) -> str:
    """Source text of a table: dataclasses as calls with keywords, everything else as Python writes it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ", ".join(f"{one.name}={literal(getattr(value, one.name))}" for one in dataclasses.fields(value))
        return f"{type(value).__name__}({fields})"
    if isinstance(value, tuple):
        return "(" + "".join(f"{literal(item)}, " for item in value) + ")"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {literal(item)}" for key, item in value.items()) + "}"
    return repr(value)


def _check_together(files: list[YamlFile], specs: list[FormatSpec]) -> None:
    """Names, aliases and orders of detection must tell the formats apart."""
    names: set[str] = set()
    orders: set[int] = set()
    for file, spec in zip(files, specs, strict=True):
        for name in (spec.name, *spec.aliases):
            if name in names:
                raise file.error(f"the name {name!r} is taken", "aliases" if name != spec.name else "name")
            names.add(name)
        for at, detect in enumerate(spec.detect):
            if detect.order in orders:
                raise file.error(f"another format is detected at order {detect.order}", "detect", at, "order")
            orders.add(detect.order)
