"""The one reader of tool calls: text in, events out, the same ones however the text is cut.

Owns the text outside regions: read-ahead for markers, framing, the release of what a region did not want. A whole
answer is this reader over one piece. Knows no format by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atom_spec.formats import FormatSpec

from atom.entrypoints.openai.events import ContentDelta, Event
from atom.entrypoints.openai.tool_parser.calls import CallOutput, Tool, new_call_id
from atom.entrypoints.openai.tool_parser.channels import ChannelReader
from atom.entrypoints.openai.tool_parser.region import Outcome, Region
from atom.entrypoints.openai.tool_parser.regions import open_call
from atom.entrypoints.openai.tool_parser.tables import FormatTables, GrammarTables, tables_of

__all__ = ["Tool", "ToolCallReader", "new_call_id", "read_whole"]


class ToolCallReader:
    """Reads one answer. `spec` None: everything is content.

    suppress_calls: declared calls are read and dropped (`tool_choice: none`). parallel: whether more than one call may
    go out. num_earlier_calls: calls in the conversation so far, for formats that number them.
    """

    def __init__(
        self,
        spec: FormatSpec | None,
        tools: Sequence[Tool],
        *,
        suppress_calls: bool = False,
        parallel: bool = True,
        num_earlier_calls: int = 0,
        id_factory: Callable[[], str] = new_call_id,
    ) -> None:
        self._reader: _TextReader | ChannelReader | None = None
        if spec is not None:
            output = CallOutput(spec, tools, suppress_calls, parallel, num_earlier_calls, id_factory)
            channels = tables_of(spec).channels
            self._reader = ChannelReader(channels, output) if channels else _TextReader(tables_of(spec), output)

    @property
    def num_undeclared(self) -> int:
        """Complete calls that named no declared tool."""
        return self._reader.output.num_undeclared if self._reader else 0

    @property
    def is_in_region(self) -> bool:
        """Whether the text so far ends inside a call, or behind an opener that may yet turn out to begin one."""
        return self._reader is not None and self._reader.is_in_region

    def feed(self, text: str) -> list[Event]:
        """The events that this text settles, in order."""
        if self._reader is None:
            return [ContentDelta(text)] if text else []
        return self._reader.feed(text)

    def release_held(self) -> list[Event]:
        """A thought follows, so that the text behind it does not touch the text so far: no marker spans the two."""
        return self._reader.release_held() if isinstance(self._reader, _TextReader) else []

    def finish(self) -> list[Event]:
        """The text has ended: everything that was held."""
        return self._reader.finish() if self._reader else []


def read_whole(
    spec: FormatSpec | None,
    tools: Sequence[Tool],
    text: str,
    *,
    suppress_calls: bool = False,
    parallel: bool = True,
    num_earlier_calls: int = 0,
    id_factory: Callable[[], str] = new_call_id,
) -> list[Event]:
    """The events of a whole answer: the reader over one piece."""
    reader = ToolCallReader(
        spec,
        tools,
        suppress_calls=suppress_calls,
        parallel=parallel,
        num_earlier_calls=num_earlier_calls,
        id_factory=id_factory,
    )
    return reader.feed(text) + reader.finish()


class _TextReader:
    """Formats whose calls are regions in a text."""

    def __init__(self, tables: FormatTables, output: CallOutput) -> None:
        self.output = output
        self._tables = tables
        self._scanner = tables.scanner
        self._held = ""
        self._region: Region | None = None
        self._last: Region | None = None
        self._candidates: list[GrammarTables] = []
        self._opener = ""
        self._is_at_start = bool(tables.at_start)

    @property
    def is_in_region(self) -> bool:
        """Whether the text so far ends in a region that is not behind its last call."""
        region = self._region
        return region is not None and (region.body is not None or not region.num_calls)

    def feed(self, text: str) -> list[Event]:
        """The events that this text settles."""
        region = self._region
        if region is not None and not self._held and region.take_plain(text):
            return []
        if self._held:
            text = self._held + text
        if region is None and not self._is_at_start:
            if self._scanner.is_plain(text):
                self._held = ""
                return [ContentDelta(text)] if text else []
            if self._scanner.search(text) is None:
                return self._unmarked(text)
        self._read(text, at_end=False)
        return self.output.take()

    def release_held(self) -> list[Event]:
        """Outside regions, what was held as the beginning of a marker is text."""
        if self._region is not None or not self._held:
            return []
        text, self._held = self._held, ""
        return [ContentDelta(text)]

    def finish(self) -> list[Event]:
        """The text has ended."""
        self._read(self._held, at_end=True)
        return self.output.take()

    def _unmarked(self, text: str) -> list[Event]:
        """Text without a complete marker, outside regions."""
        end = self._scanner.hold_from(text)
        self._held = text[end:]
        return [ContentDelta(text[:end] if self._held else text)] if end else []

    def _read(self, text: str, at_end: bool) -> None:
        """Read a piece, with what was held in front of it."""
        position = 0
        while True:
            if self._region is None:
                position = self._outside(text, position, at_end)
                if self._region is None:
                    self._held = text[position:]
                    return
            region = self._region
            position = region.advance(text, position, at_end)
            if region.outcome is Outcome.OPEN:
                region.suspend(text, position)
                self._held = text[position:]
                return
            text, position = self._close_region(region, text, position)

    def _outside(self, text: str, position: int, at_end: bool) -> int:
        """Text up to the next region's opener; its start, or where the held suffix begins."""
        if self._is_at_start:
            start = len(text) - len(text[position:].lstrip())
            self.output.content(text[position:start])
            position = start
            if position == len(text):
                return position
            self._is_at_start = False
            if text[position] == "{":
                self._open("", self._tables.at_start, position)
                return position
        while True:
            match = self._scanner.search(text, position)
            if match is None:
                end = len(text) if at_end else self._scanner.hold_from(text, position)
                self.output.content(text[position:end])
                return end
            start, literal = match.start(), match.group()
            self.output.content(text[position:start])
            position = match.end()
            if literal in self._tables.by_opener:
                self._open(literal, self._tables.by_opener[literal], start)
                return start
            if literal not in self._tables.framing:
                self._reopen(literal, text, start)
                return start

    def _open(self, literal: str, grammars: Sequence[GrammarTables], start: int) -> None:
        self._opener = literal
        self._candidates = list(grammars)
        self._enter(self._candidates.pop(0), start)

    def _enter(self, tables: GrammarTables, start: int) -> None:
        self._region = Region(tables, self.output, open_call, self._opener)
        self._region.mark = start

    def _reopen(self, literal: str, text: str, start: int) -> None:
        """A closer that the last region may have left over."""
        assert self._last is not None
        self._last.reopen(start)
        self._region, self._last = self._last, None

    def _close_region(self, region: Region, text: str, position: int) -> tuple[str, int]:
        """The region has ended; the text and the position to go on from."""
        self._region = None
        self._scanner = self._tables.scanner
        if region.outcome is Outcome.CLOSED:
            return text, position
        if region.is_undecided_since_before:
            text, position = region.undecided(text), 0
        else:
            position = region.mark
        if region.outcome is Outcome.LEFT:
            self._leave(region)
        elif self._candidates:
            self._enter(self._candidates.pop(0), position)
        else:
            self.output.content(self._opener)
            position += len(self._opener)
            if not self._opener:
                self._is_at_start = False
        return text, position

    def _leave(self, region: Region) -> None:
        """Text goes on where closers could be: while they may still come, they are looked for."""
        closers = region.tables.leftover_closers(region.is_wrapped, region.was_cut) if region.has_dropped else ()
        if closers:
            self._last = region
            self._scanner = self._tables.leftover_scanner(closers)
