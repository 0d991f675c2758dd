"""Which order the events of each streaming operation have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from conformance.http.chat_stream import check_chat, check_completion
from conformance.http.messages_stream import check_messages
from conformance.http.responses_stream import check_responses
from conformance.http.sse import Event, read_events

OrderCheck = Callable[[Sequence[Event], dict[str, Any]], None]

# By operationId; a test holds that every operation of the contract that streams is here.
ORDERS: dict[str, OrderCheck] = {
    "createChatCompletion": check_chat,
    "createCompletion": check_completion,
    "createMessage": check_messages,
    "createResponse": check_responses,
}


def check_stream(operation_id: str, text: str, request: dict[str, Any]) -> None:
    """Raise StreamError unless the stream that answered `request` has its API's framing and order."""
    ORDERS[operation_id](read_events(text), request)
