"""The runner of the clients' snippets and probes: it talks to its own servers and to no others."""

from __future__ import annotations

import pytest

from tests.entrypoints.live import running, scripted
from tools.clients import __main__ as command


def test_another_server_at_the_port_is_not_taken_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(scripted("Hello.")) as live:
        monkeypatch.setattr(command, "PORT", int(live.url.rpartition(":")[2]))
        with pytest.raises(RuntimeError, match="another server"), command._serving(["atom.cli", "--help"]):
            pass
