"""Identifiers that the server makes, and the rule for those that clients send.

Owns their shape. Call ids of tool calls are not here: a wire format may prescribe them.
"""

from __future__ import annotations

import re
import secrets

_CLIENT_ID = re.compile(r"[\x21-\x7e]{1,200}")


def new_chat_id() -> str:
    """Id of one chat answer, shared by all of its chunks."""
    return "chatcmpl-" + secrets.token_hex(16)


def new_completion_id() -> str:
    """Id of one text completion, shared by all of its chunks."""
    return "cmpl-" + secrets.token_hex(16)


def new_message_id() -> str:
    """Id of one answer of /v1/messages."""
    return "msg_" + secrets.token_hex(16)


def new_response_id() -> str:
    """Id of one answer of /v1/responses."""
    return "resp_" + secrets.token_hex(16)


def new_item_id(kind: str) -> str:
    """Id of one output item of a response; `kind` is what it begins with."""
    return f"{kind}_{secrets.token_hex(16)}"


def request_id_for(client_id: str | None) -> str:
    """The client's `x-request-id` when it is short printable ASCII without blanks, else a fresh id."""
    if client_id is not None and _CLIENT_ID.fullmatch(client_id):
        return client_id
    return "req-" + secrets.token_hex(16)
