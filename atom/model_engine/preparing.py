"""Requests that wait for their grammar to be compiled.

Owns them from their arrival until they can be queued, so that no step waits for a compiler. Knows neither the compiler
nor the scheduler.
"""

from __future__ import annotations

from concurrent.futures import Future

from atom.model_engine.messages import EngineRequest


class PreparingRequests:
    """Requests by their id, in the order of arrival."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[EngineRequest, Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._waiting

    @property
    def ids(self) -> list[str]:
        """The ids of all that wait."""
        return list(self._waiting)

    def add(self, request: EngineRequest, preparation: Future[None]) -> None:
        """Keep the request until `preparation` is done."""
        self._waiting[request.request_id] = (request, preparation)

    def remove(self, request_id: str) -> bool:
        """Forget a request; False when it is not here."""
        return self._waiting.pop(request_id, None) is not None

    def take_ready(self) -> list[tuple[EngineRequest, BaseException | None]]:
        """The requests whose preparation is done, with what it failed of."""
        done = [request_id for request_id, (_, future) in self._waiting.items() if future.done()]
        taken = [self._waiting.pop(request_id) for request_id in done]
        return [(request, future.exception()) for request, future in taken]
