"""API keys: who may call. Knows neither routes nor endpoints."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence


class ApiKeys:
    """The accepted keys. Without any, everyone is let in.

    Keys are compared as digests, all of them each time, so that the time taken tells nothing about them.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def accept(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries an accepted key, as a bearer token or as x-api-key."""
        if not self._digests:
            return True
        candidates = [headers.get("x-api-key", "")]
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            candidates.append(token.strip())
        is_accepted = False
        for candidate in candidates:
            digest = hashlib.sha256(candidate.encode("latin-1", "replace")).digest()
            for known in self._digests:
                is_accepted |= hmac.compare_digest(digest, known)
        return is_accepted
