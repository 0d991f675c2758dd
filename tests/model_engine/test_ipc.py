from __future__ import annotations

import threading

import pytest
import zmq

from atom.model_engine import ipc
from atom.model_engine.ipc import ClientSockets, EngineSockets
from atom.model_engine.messages import (
    AbortRequests,
    EngineDead,
    EngineInfo,
    EngineReady,
    EngineRequest,
    EngineStats,
    Shutdown,
    StepOutput,
    TokenDelta,
    TokenLogprobs,
    UtilityCall,
    UtilityReply,
)
from atom.sampling_params import SamplingParams

INFO = EngineInfo("m", "A", "cpu", "float32", 10, 20, [1, 2], 16, 30, 4, {"norm": "reference"})
TO_ENGINE = [
    EngineRequest(
        "r", [1, 2], SamplingParams(stop_strings=["a", "b"], logit_bias={3: -1.5}, stop_token_ids=(4,)), 1.5, 2, "salt"
    ),
    EngineRequest("s", [1], SamplingParams(stop_strings="x", temperature=0.0, seed=-5)),
    AbortRequests(["r", "s"]),
    UtilityCall(3, "echo", {"a": 1, "b": None, "c": "d", "e": 0.5, "f": True}),
    Shutdown(2.5),
]
ENTRY = TokenLogprobs(5, -0.25, 1, [5, 6], [-0.25, -2.0])
FROM_ENGINE = [
    EngineReady(INFO),
    StepOutput([TokenDelta("r", [5], None, None, [ENTRY], [None, ENTRY], 16)], EngineStats(num_running=1)),
    StepOutput([TokenDelta("r", [], "error", error="no")]),
    UtilityReply(3, "{}"),
    UtilityReply(4, error="bad"),
    EngineDead("why"),
]


@pytest.fixture(params=["ipc", "tcp"])
def pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201  # a generator fixture
    if request.param == "tcp":
        monkeypatch.setattr(ipc, "_MAX_SOCKET_PATH", 5)
    client = ClientSockets()
    engine = EngineSockets(client.addresses)
    assert client.addresses.to_engine.startswith(request.param)
    yield client, engine
    engine.close()
    client.close()


def test_every_message_arrives_as_it_was_sent(pair: tuple[ClientSockets, EngineSockets]) -> None:
    client, engine = pair
    for answer in FROM_ENGINE:
        engine.send(answer)
    answers: list[object] = []
    while len(answers) < len(FROM_ENGINE):
        assert client._from_engine.poll(60_000)
        answers += client.receive_all()
    assert answers == FROM_ENGINE
    for message in TO_ENGINE:
        client.send(message)
    received: list[object] = []
    while len(received) < len(TO_ENGINE):
        engine.wait(60)
        received += engine.receive_all()
    assert received[0].sampling.stop_list == ("a", "b")  # type: ignore[attr-defined]  # the first message is a request
    assert received[1:] == TO_ENGINE[1:]


def test_connected_sockets_need_no_names(pair: tuple[ClientSockets, EngineSockets]) -> None:
    client, engine = pair
    folder = client._folder
    engine.send(EngineDead("why"))
    assert client._from_engine.poll(60_000)
    assert client._to_engine.poll(60_000, zmq.POLLOUT)
    client.unlink()
    assert folder is None or not folder.exists()
    client.send(Shutdown())
    engine.wait(60)
    assert list(engine.receive_all()) == [Shutdown()]


def test_an_engine_has_its_last_words_until_it_is_gone(
    pair: tuple[ClientSockets, EngineSockets], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system holds for an engine that has gone is on its way still."""
    monkeypatch.setattr(ipc, "_LAST_WORDS", 600.0)
    client, engine = pair
    words = [EngineDead(str(place) * 1_000_000) for place in range(9)]
    engine.send(words[0])
    assert client._from_engine.poll(60_000)
    waiting = threading.Thread(target=client.wait_for_last_words)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    for message in words[1:]:
        engine.send(message)
    engine.close()
    waiting.join(60)
    assert not waiting.is_alive()
    assert list(client.receive_all()) == words


def test_an_engine_that_never_came_has_no_last_words() -> None:
    client = ClientSockets()
    client.wait_for_last_words()
    client.close()


def test_a_message_to_nobody_is_dropped() -> None:
    client = ClientSockets()
    client.send(Shutdown())
    client.close()


def test_waiting_ends_with_its_time(pair: tuple[ClientSockets, EngineSockets]) -> None:
    _, engine = pair
    engine.wait(0.01)
    assert list(engine.receive_all()) == []
