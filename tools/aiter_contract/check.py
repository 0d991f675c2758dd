"""The contract against one tree: what is missing, what changed, which call of ours no longer binds.

Owns the findings and their wording. Knows neither where a tree comes from nor how its text is parsed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from atom_spec.aiter import (
    CALLABLES,
    SOURCE_LINES,
    TABLES,
    AiterCall,
    AiterCallable,
    KernelTable,
    Parameter,
    SourceLine,
)

from tools.aiter_contract.resolve import Resolver
from tools.aiter_contract.signatures import Source, bindings, read_source, signature
from tools.aiter_contract.tree import SourceTree

BINDING_HEADER = "aiter_meta/csrc/include/rocm_ops.hpp"


@dataclass(frozen=True)
class Finding:
    """One way in which the tree is not what the contract says. `str()` is a line for people."""

    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


@dataclass(frozen=True)
class Contract:
    """What is checked; the default is all of the generated contract."""

    callables: Mapping[str, AiterCallable]
    tables: tuple[KernelTable, ...] = ()
    source_lines: tuple[SourceLine, ...] = ()


PINNED = Contract(CALLABLES, TABLES, SOURCE_LINES)


def check(tree: SourceTree, contract: Contract = PINNED) -> list[Finding]:
    """Every finding, in the contract's order; empty when the tree keeps it."""
    resolver = Resolver(tree)
    compiled = bindings(tree.text(BINDING_HEADER)) if tree.has(BINDING_HEADER) else {}
    findings = []
    for item in contract.callables.values():
        findings += [Finding(item.name, message) for message in _callable(item, resolver, compiled)]
    for table in contract.tables:
        findings += [Finding(table.path, message) for message in _table(table, tree)]
    for line in contract.source_lines:
        findings += [Finding(line.path, message) for message in _source_line(line, tree)]
    return findings


def _callable(item: AiterCallable, resolver: Resolver, compiled: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    found = resolver.find(item.name)
    if found is None:
        yield "there is no such callable"
        return
    source = read_source(found)
    yield from _parameters(item, source)
    for call in item.calls:
        yield from _call(call, source)
    if source.binding is not None:
        yield from _binding(source, source.binding, compiled)


def _parameters(item: AiterCallable, source: Source) -> Iterator[str]:
    """The declared list against the source's: names and order, then defaults and kinds one by one."""
    wanted, found = [p.name for p in item.parameters], [p.name for p in source.parameters]
    if source.has_variadic:
        yield f"takes any arguments ({source.place}), so nothing about a call can be checked"
    if wanted != found:
        gone = [name for name in wanted if name not in found]
        added = [name for name in found if name not in wanted]
        what = f"gone {gone}, new {added}" if gone or added else f"the order is {found}, not {wanted}"
        yield f"parameters differ ({source.place}): {what}"
    by_name = {parameter.name: parameter for parameter in source.parameters}
    for parameter in item.parameters:
        other = by_name.get(parameter.name)
        if other is not None and other != parameter:
            yield f"parameter {parameter.name} is {_show(other)} ({source.place}), not {_show(parameter)}"


def _show(parameter: Parameter) -> str:
    default = "without a default" if parameter.default is None else f"by default {parameter.default}"
    return f"{default}, by keyword only" if parameter.keyword_only else default


def _call(call: AiterCall, source: Source) -> Iterator[str]:
    """Whether our call binds, and each positional argument lands on the parameter that we mean."""
    try:
        signature(source.parameters).bind(*call.positional, **dict.fromkeys(call.keywords))
    except TypeError as error:
        yield f"our call {call} does not bind ({source.place}): {error}"
        return
    names = [parameter.name for parameter in source.parameters if not parameter.keyword_only]
    for meant, lands in zip(call.positional, names, strict=False):
        if meant != lands:
            yield f"our call {call} passes {meant} where the source has {lands} ({source.place})"


def _binding(source: Source, name: str, compiled: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """A stub against the compiled function's entry. Names may differ: the stub's dispatcher passes by position."""
    if name not in compiled:
        yield f"its stub ({source.place}) loads {name}, which {BINDING_HEADER} does not define"
        return
    names = compiled[name]
    if names and len(names) != len(source.parameters):
        yield (
            f"its stub ({source.place}) has {len(source.parameters)} parameters, the compiled {name} "
            f"{len(names)}: {list(names)}"
        )


def _table(table: KernelTable, tree: SourceTree) -> Iterator[str]:
    if not tree.has(table.path):
        yield "there is no such kernel table"
        return
    rows = list(csv.DictReader(io.StringIO(tree.text(table.path))))
    for wanted in table.rows:
        matching = [row for row in rows if all(row.get(column) == value for column, value in wanted)]
        shown = ", ".join(f"{column} {value}" for column, value in wanted)
        if not matching:
            yield f"no kernel for {shown} ({table.why})"
            continue
        folder = table.path.rpartition("/")[0]
        missing = [row[table.file_column] for row in matching if not tree.has(f"{folder}/{row[table.file_column]}")]
        for name in missing:
            yield f"the kernel for {shown} is in {name}, which is not there"


def _source_line(line: SourceLine, tree: SourceTree) -> Iterator[str]:
    if not tree.has(line.path):
        yield "there is no such file"
    elif " ".join(line.text.split()) not in " ".join(tree.text(line.path).split()):
        yield f"no longer says {line.text!r}: {line.why}"
