"""The pipeline's events as the events of Anthropic's stream, and those added up to a message.

Owns the content blocks: which are open, their order and indexes, what is withheld. Whole is the fold of the streamed
events. Knows neither the engine nor HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from atom_spec.anthropic import (
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    InputJsonDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
)

from atom.entrypoints.openai.events import ContentDelta, Event, ReasoningDelta, ToolCallArguments, ToolCallStart
from atom.entrypoints.openai.sse import named_frame

Block = TextBlock | ThinkingBlock | ToolUseBlock
BlockEvent = ContentBlockStart | ContentBlockDelta | ContentBlockStop
StreamEvent = BlockEvent | MessageStart | MessageDelta | MessageStop | Ping

# Clients want a signature and send it back; nobody checks it.
SIGNATURE = "atom"

# What is sent of thinking: all of it; blocks without their text; nothing.
Thoughts = Literal["shown", "omitted", "withheld"]


class BlockStream:
    """One answer's content blocks, opened and closed as its events come. At most one is open."""

    def __init__(self, thoughts: Thoughts = "shown") -> None:
        self._thoughts = thoughts
        self._open: type[TextBlock] | type[ThinkingBlock] | None = None
        self._num_blocks = 0
        self._called: ToolCallStart | None = None  # named, but its arguments have not arrived
        self._events: list[BlockEvent] = []

    def feed(self, events: Iterable[Event]) -> list[BlockEvent]:
        """What these events make of the blocks."""
        for event in events:
            if isinstance(event, ContentDelta):
                self._ensure_open(TextBlock(text=""))
                self._delta(TextDelta(text=event.text))
            elif isinstance(event, ReasoningDelta):
                self._think(event.text)
            elif isinstance(event, ToolCallStart):
                self._called = event
            elif isinstance(event, ToolCallArguments):
                self._call(event.text)
        return self._take()

    def finish(self) -> list[BlockEvent]:
        """The answer has ended. One without any block gets an empty text."""
        self._close()
        if not self._num_blocks:
            self._start(TextBlock(text=""))
            self._stop()
        return self._take()

    def _think(self, text: str) -> None:
        if self._thoughts == "withheld":
            return
        self._ensure_open(ThinkingBlock(thinking="", signature=""))
        if self._thoughts == "shown":
            self._delta(ThinkingDelta(thinking=text))

    def _call(self, arguments: str) -> None:
        """A whole block: a call's arguments arrive at once."""
        assert self._called is not None
        self._close()
        self._start(ToolUseBlock(id=self._called.id, name=self._called.name, input={}))
        self._delta(InputJsonDelta(partial_json=as_object(arguments)))
        self._stop()

    def _ensure_open(self, block: TextBlock | ThinkingBlock) -> None:
        if self._open is not type(block):
            self._close()
            self._open = type(block)
            self._start(block)

    def _close(self) -> None:
        if self._open is ThinkingBlock:
            self._delta(SignatureDelta(signature=SIGNATURE))
        if self._open is not None:
            self._open = None
            self._stop()

    def _start(self, block: Block) -> None:
        self._events.append(ContentBlockStart(index=self._num_blocks, content_block=block))

    def _delta(self, delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta) -> None:
        self._events.append(ContentBlockDelta(index=self._num_blocks, delta=delta))

    def _stop(self) -> None:
        self._events.append(ContentBlockStop(index=self._num_blocks))
        self._num_blocks += 1

    def _take(self) -> list[BlockEvent]:
        events, self._events = self._events, []
        return events


def as_object(arguments: str) -> str:
    """A call's arguments as the JSON of an object. Some formats pass on a body that is none: it becomes `raw`."""
    try:
        if isinstance(msgspec.json.decode(arguments), dict):
            return arguments
    except (msgspec.DecodeError, RecursionError):
        pass
    return msgspec.json.encode({"raw": arguments}).decode()


def fold(events: Sequence[BlockEvent]) -> list[Block]:
    """The content of the message that a stream of these events adds up to."""
    blocks: list[Block] = []
    texts: list[list[str]] = []
    for event in events:
        if isinstance(event, ContentBlockStart):
            blocks.append(event.content_block)
            texts.append([])
        elif isinstance(event, ContentBlockDelta):
            _add(blocks[event.index], texts[event.index], event.delta)
    for block, parts in zip(blocks, texts, strict=True):
        text = "".join(parts)
        if isinstance(block, TextBlock):
            block.text = text
        elif isinstance(block, ThinkingBlock):
            block.thinking = text
        else:
            block.input = msgspec.json.decode(text)
    return blocks


def _add(block: Block, texts: list[str], delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta) -> None:
    if isinstance(delta, TextDelta):
        texts.append(delta.text)
    elif isinstance(delta, ThinkingDelta):
        texts.append(delta.thinking)
    elif isinstance(delta, InputJsonDelta):
        texts.append(delta.partial_json)
    elif isinstance(block, ThinkingBlock):
        block.signature = delta.signature


def event_frame(event: StreamEvent) -> bytes:
    """The event as it goes over the wire."""
    return named_frame(event.type, msgspec.json.encode(event))


PING = event_frame(Ping())
