"""The refusals that the contract declares beside its schemas: what no schema can say, under `x-refusals`.

Owns their reading and which of them an error is. `docs/api.md` lists the same entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason to refuse a request that its schema allows. `message`: what the error's message matches somewhere."""

    name: str
    status: int
    operations: frozenset[str]
    message: re.Pattern[str]

    def is_of(self, operation_id: str, status: int, message: str) -> bool:
        """Whether the error is this refusal."""
        return operation_id in self.operations and status == self.status and bool(self.message.search(message))


def read_refusals(contract: Mapping[str, Any]) -> list[Refusal]:
    """The refusals of a contract, in its order."""
    return [
        Refusal(name, entry["status"], frozenset(entry["operations"]), re.compile(entry["message"]))
        for name, entry in contract["x-refusals"].items()
    ]


def find_refusal(refusals: Iterable[Refusal], operation_id: str, status: int, message: str) -> Refusal | None:
    """The refusal that the error is, or None for one that nothing declares."""
    return next((refusal for refusal in refusals if refusal.is_of(operation_id, status, message)), None)


def error_message(body: Any) -> str:
    """The message of an error in either API's shape. Raises KeyError or TypeError for another body."""
    return str(body["error"]["message"])
