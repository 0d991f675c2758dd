"""How many draft tokens a server accepted while it was measured.

Owns the reading of /debug/mtp_stats, whose totals run since the server's start: two readings give the run's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from atom.benchmarks.http_client import Session, call


@dataclass(frozen=True, slots=True)
class Speculation:
    """accept_length: tokens a forward, the bonus token included. acceptance_rate: accepted over drafted, 0 to 1.

    since_start: the server's counters did not move during the run, so these are its figures since it started.
    """

    accept_length: float | None
    acceptance_rate: float | None
    since_start: bool = False


async def read_counters(session: Session, base_url: str) -> dict[str, Any] | None:
    """The server's draft statistics; None where it has none or does not speculate. Raises ServerCallError."""
    stats = await call(session, "GET", f"{base_url}/debug/mtp_stats")
    return stats if isinstance(stats, dict) and stats.get("enabled") else None


def speculation_between(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Speculation | None:
    """The acceptance between two readings; None without speculation."""
    if after is None:
        return None
    before = before or {}
    drafted = _number(after, "total_draft_tokens") - _number(before, "total_draft_tokens")
    if drafted <= 0:
        return Speculation(_optional(after, "average_tokens_per_forward"), _optional(after, "acceptance_rate"), True)
    accepted = _number(after, "total_accepted_tokens") - _number(before, "total_accepted_tokens")
    forwards = _forwards(after) - _forwards(before)
    accept_length = 1.0 + accepted / forwards if forwards > 0 else _optional(after, "average_tokens_per_forward")
    return Speculation(accept_length, accepted / drafted)


def _forwards(stats: Mapping[str, Any]) -> float:
    """Verified forwards: `distribution` counts them by the number of accepted tokens."""
    distribution = stats.get("distribution")
    return float(sum(distribution.values())) if isinstance(distribution, Mapping) else 0.0


def _number(stats: Mapping[str, Any], key: str) -> float:
    return _optional(stats, key) or 0.0


def _optional(stats: Mapping[str, Any], key: str) -> float | None:
    value = stats.get(key)
    return float(value) if isinstance(value, int | float) else None
