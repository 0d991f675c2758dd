"""docs/formats.md: every wire format as its file describes it.

Owns the page. Knows nothing that is not in the tables.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.format_tables import Detect, FormatSpec
from codegen.text import markdown_header, markdown_table

_INTRODUCTION = """# Wire formats

How models write tool calls. [tool-calls.md](tool-calls.md) says how they are read,
[adding-a-format.md](adding-a-format.md) how to add one. `--tool-call-parser` takes the names and the aliases.

"""


def page(specs: Sequence[FormatSpec], sources: str) -> str:
    """The whole page."""
    rows = [
        (f"[{spec.name}](#{spec.name})", spec.title, ", ".join(spec.aliases), ", ".join(spec.variants), _dialects(spec))
        for spec in specs
    ]
    overview = markdown_table(("name", "models", "aliases", "variants", "reasoning"), rows)
    return markdown_header(sources) + _INTRODUCTION + overview + "".join(map(_section, specs))


def _section(spec: FormatSpec) -> str:
    evidence = [
        (str(detect.order), detect.variant or "", _evidence(detect))
        for detect in sorted(spec.detect, key=lambda detect: detect.order)
    ]
    forms = [
        (form.name, form.variant or "", _code(form.section), _code(form.call), _code(form.argument or ""))
        for form in spec.forms
    ]
    parts = [
        f"\n## {spec.name}\n\n{spec.title}.",
        "Recognised in what the template renders by:\n\n" + markdown_table(("order", "variant", "evidence"), evidence),
        "For example:\n\n" + "\n".join(f"```text\n{example.text}\n```" for example in spec.examples) + "\n",
        "Forms that are read, the canonical one of each variant first:\n\n"
        + markdown_table(("form", "variant", "section", "call", "argument"), forms),
        _notes(spec),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _notes(spec: FormatSpec) -> str:
    notes = [
        "A complete call of an undeclared tool "
        + ("stays in the answer as text." if spec.undeclared == "release" else "is dropped with its channel."),
    ]
    if spec.framing:
        notes.append(f"Dropped wherever they stand: {', '.join(map(_code, spec.framing))}.")
    if spec.ids == "wire":
        notes.append(f"Call ids are the wire's: {_code(spec.writings[None].id)}.")
    if spec.history_id:
        notes.append(f"In earlier turns the template takes ids like {_code(spec.history_id)} only.")
    return " ".join(notes)


def _dialects(spec: FormatSpec) -> str:
    return ", ".join(spec.dialects_of())


def _evidence(detect: Detect) -> str:
    parts = [_code(literal) for literal in detect.all]
    if detect.any:
        parts.append("one of " + ", ".join(map(_code, detect.any)))
    if detect.none:
        parts.append("none of " + ", ".join(map(_code, detect.none)))
    return " and ".join(parts)


def _code(text: str) -> str:
    """A literal in a table's cell; newlines are shown."""
    shown = text.replace("\n", "\\n")
    if not shown:
        return ""
    fence = "``" if "`" in shown else "`"
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"
