"""A format's tables, compiled: the scanners and matchers that every reader of it shares.

Owns nothing that changes while an answer is read. Knows no format by name.
"""

from __future__ import annotations

from functools import cached_property
from weakref import WeakKeyDictionary

from atom_spec.formats import FormatSpec, Grammar

from atom.entrypoints.openai.marker_scanner import MarkerScanner
from atom.entrypoints.openai.tool_parser.channels import ChannelTables
from atom.entrypoints.openai.tool_parser.patterns import Choice


class GrammarTables:
    """The matchers of one grammar."""

    def __init__(self, grammar: Grammar, max_space: int) -> None:
        """`max_space`: white space that may be held outside a wrapper, in case a closer follows it."""
        self.grammar = grammar
        self.max_space = max_space
        self.wrapper = Choice([tag.open for tag in grammar.wrappers])
        self.wrapper_close = Choice([closer for tag in grammar.wrappers for closer in tag.close])
        self.call = Choice([tag.open for tag in grammar.calls])
        self.argument = Choice([tag.open for tag in grammar.arguments])
        self.block = Choice([tag.open for tag in grammar.blocks if tag.open])
        self.blocks = [tag for tag in grammar.blocks if tag.open]
        self.has_direct_json = any(not tag.open for tag in grammar.blocks)
        self.call_closers = [Choice(tag.close) for tag in grammar.calls]
        self.all_call_closers = Choice(list(dict.fromkeys(end for tag in grammar.calls for end in tag.close)))
        self.argument_closers = [Choice(tag.close) for tag in grammar.arguments]
        self.all_argument_closers = Choice(list(dict.fromkeys(end for tag in grammar.arguments for end in tag.close)))
        call_ends = [end for tag in grammar.calls for end in tag.close]
        self.orphans = Choice(list(dict.fromkeys([*call_ends, *grammar.orphans])))
        self._num_call_ends = len(set(call_ends))
        self._scanners: dict[tuple[int, int], MarkerScanner] = {}

    def is_call_closer(self, orphan: int) -> bool:
        """Whether orphan number `orphan` ends a call, so that nothing else of it is left over."""
        return orphan < self._num_call_ends

    def closers_of(self, call: int) -> Choice:
        """What ends the call that spelling number `call` opened; -1: a call without a tag of its own."""
        return self.all_call_closers if call < 0 else self.call_closers[call]

    def value_scanner(self, call: int, argument: int) -> MarkerScanner:
        """Finds where a value may end, by the spellings that opened the call and the argument."""
        scanner = self._scanners.get((call, argument))
        if scanner is None:
            choices = (self.argument_closers[argument], self.closers_of(call), self.argument)
            scanner = MarkerScanner(pattern.head for choice in choices for pattern in choice.patterns)
            self._scanners[call, argument] = scanner
        return scanner

    @cached_property
    def call_end_scanner(self) -> MarkerScanner | None:
        """Finds any closer of a call or a wrapper, to get out of a body that can't be read; None: there are none."""
        choices = (self.all_call_closers, self.wrapper_close)
        heads = [pattern.head for choice in choices for pattern in choice.patterns]
        return MarkerScanner(heads) if heads else None

    def leftover_closers(self, is_wrapped: bool, was_cut: bool) -> tuple[str, ...]:
        """The closers that may be left over of an open wrapper, or of a call whose value was cut."""
        choices = (self.wrapper_close,) * is_wrapped + (self.orphans,) * was_cut
        return tuple(pattern.head for choice in choices for pattern in choice.patterns if pattern.is_literal)


class FormatTables:
    """The matchers of one format. `by_opener`: the grammars that a marker may open a region of, in order."""

    def __init__(self, spec: FormatSpec) -> None:
        self.grammars = [GrammarTables(grammar, spec.max_hold) for grammar in spec.grammars]
        self.by_opener: dict[str, list[GrammarTables]] = {}
        for tables in self.grammars:
            choices = (tables.wrapper, tables.call) if tables.grammar.is_bare else (tables.wrapper,)
            heads = {pattern.head for choice in choices for pattern in choice.patterns}
            for opener in spec.markers:  # of two openers that begin alike, the shorter one stands for both
                if any(head.startswith(opener) for head in heads):
                    self.by_opener.setdefault(opener, []).append(tables)
        self.framing = frozenset(spec.framing)
        self.channels = ChannelTables(spec) if spec.channels else None
        self.scanner = MarkerScanner(spec.markers)
        self.at_start = [tables for tables in self.grammars if tables.grammar.at_start]
        self.spec = spec
        self._leftover: dict[tuple[str, ...], MarkerScanner] = {}

    def leftover_scanner(self, closers: tuple[str, ...]) -> MarkerScanner:
        """The scanner while these closers may be left over of the last region."""
        if closers not in self._leftover:
            self._leftover[closers] = MarkerScanner((*self.spec.markers, *closers))
        return self._leftover[closers]


_TABLES: WeakKeyDictionary[FormatSpec, FormatTables] = WeakKeyDictionary()


def tables_of(spec: FormatSpec) -> FormatTables:
    """The compiled tables of a format; made once."""
    tables = _TABLES.get(spec)
    if tables is None:
        tables = _TABLES[spec] = FormatTables(spec)
    return tables
