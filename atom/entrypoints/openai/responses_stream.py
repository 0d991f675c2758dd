"""The pipeline's events as the events of a Responses stream, and those added up to output items.

Owns the items: which one is open, their order and indexes, and the numbers of all events. The whole answer has the same
items. Knows neither the engine nor HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Literal

import msgspec
from atom_spec import responses as spec

from atom.entrypoints.openai.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from atom.entrypoints.openai.ids import new_item_id
from atom.entrypoints.openai.sse import named_frame

Item = spec.ReasoningItem | spec.OutputMessage | spec.FunctionCallItem
Status = Literal["in_progress", "completed", "incomplete"]


class ItemStream:
    """One answer's output items, opened and closed as its events come. At most one is open.

    output: the items that are closed.
    """

    def __init__(self) -> None:
        self.output: list[Item] = []
        self._numbers = count()
        self._open: Item | None = None
        self._texts: list[str] = []  # of the open item
        self._logprobs: list[spec.ResponsesTokenLogprob] = []  # of the open message
        self._waiting: list[spec.ResponsesTokenLogprob] = []  # for the next text of a message
        self._frames: list[bytes] = []

    def feed(
        self, events: Sequence[Event], logprobs: Sequence[spec.ResponsesTokenLogprob] = (), *, is_cut: bool = False
    ) -> list[bytes]:
        """The frames of these events; the tokens of `logprobs` have come with their text.

        is_cut: the events are the last, and the answer was cut off behind them.
        """
        self._waiting += logprobs
        for place, event in enumerate(events):
            if isinstance(event, ContentDelta):
                self._write(spec.OutputMessage, event.text)
            elif isinstance(event, ReasoningDelta):
                self._write(spec.ReasoningItem, event.text)
            elif isinstance(event, ToolCallStart):
                self._call(event)
            elif isinstance(event, ToolCallArguments):
                self._texts.append(event.text)
                self._emit(spec.FunctionCallArgumentsDelta, **self._place(), delta=event.text)
            elif isinstance(event, ToolCallEnd):
                # A call whose end was made up is no call to run.
                self._close("incomplete" if is_cut and place == len(events) - 1 else "completed")
        return self._take()

    def finish(self, *, is_cut: bool) -> list[bytes]:
        """The answer has ended, or was cut off. One without any item gets an empty message."""
        self._close("incomplete" if is_cut else "completed")
        if not self.output:
            self._write(spec.OutputMessage, "")
            self._close("incomplete" if is_cut else "completed")
        return self._take()

    def lifecycle(self, kind: Callable[..., Any], response: spec.Response) -> bytes:
        """The frame of an event about the whole response."""
        self._emit(kind, response=response)
        return b"".join(self._take())

    def _write(self, kind: type[spec.OutputMessage] | type[spec.ReasoningItem], text: str) -> None:
        """Text of a message or of a thought, in the open item if it is one."""
        if not isinstance(self._open, kind):
            self._close("completed")
            self._begin(_item(kind, "in_progress"))
            self._emit(spec.ContentPartAdded, **self._place(), content_index=0, part=_part(kind, ""))
        if not text:
            return
        self._texts.append(text)
        if kind is spec.OutputMessage:
            logprobs, self._waiting = self._waiting, []
            self._logprobs += logprobs
            self._emit(spec.OutputTextDelta, **self._place(), content_index=0, delta=text, logprobs=logprobs)
        else:
            self._emit(spec.ReasoningTextDelta, **self._place(), content_index=0, delta=text)

    def _call(self, event: ToolCallStart) -> None:
        self._close("completed")
        self._begin(
            spec.FunctionCallItem(
                id=new_item_id("fc"), status="in_progress", call_id=event.id, name=event.name, arguments=""
            )
        )

    def _begin(self, item: Item) -> None:
        self._open = item
        self._emit(spec.OutputItemAdded, output_index=len(self.output), item=item)

    def _close(self, status: Status) -> None:
        item, text = self._open, "".join(self._texts)
        if item is None:
            return
        if isinstance(item, spec.FunctionCallItem):
            self._emit(spec.FunctionCallArgumentsDone, **self._place(), name=item.name, arguments=text)
            item = msgspec.structs.replace(item, status=status, arguments=text)
        else:
            part = _part(type(item), text)
            if isinstance(part, spec.OutputText):
                part.logprobs = self._logprobs + self._waiting
                self._emit(spec.OutputTextDone, **self._place(), content_index=0, text=text, logprobs=part.logprobs)
                self._logprobs, self._waiting = [], []
            else:
                self._emit(spec.ReasoningTextDone, **self._place(), content_index=0, text=text)
            self._emit(spec.ContentPartDone, **self._place(), content_index=0, part=part)
            item = msgspec.structs.replace(item, status=status, content=[part])
        self._emit(spec.OutputItemDone, output_index=len(self.output), item=item)
        self.output.append(item)
        self._open = None
        self._texts = []

    def _place(self) -> dict[str, Any]:
        assert self._open is not None
        return {"item_id": self._open.id, "output_index": len(self.output)}

    def _emit(self, kind: Callable[..., Any], **fields: Any) -> None:
        event = kind(sequence_number=next(self._numbers), **fields)
        self._frames.append(named_frame(event.type, msgspec.json.encode(event)))

    def _take(self) -> list[bytes]:
        frames, self._frames = self._frames, []
        return frames


def _item(kind: type[spec.OutputMessage] | type[spec.ReasoningItem], status: Status) -> Item:
    if kind is spec.OutputMessage:
        return spec.OutputMessage(id=new_item_id("msg"), status=status, content=[])
    return spec.ReasoningItem(id=new_item_id("rs"), status=status, summary=[], content=[])


def _part(kind: type[Item], text: str) -> spec.OutputText | spec.ReasoningText:
    if kind is spec.OutputMessage:
        return spec.OutputText(text=text, annotations=[], logprobs=[])
    return spec.ReasoningText(text=text)
