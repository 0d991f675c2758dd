"""A real server for tests: uvicorn in a thread, over any engine, on a free port."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from atom.entrypoints.openai import lifecycle
from atom.entrypoints.openai.app import create_app
from atom.entrypoints.openai.chat_encoders import JinjaChatEncoder
from atom.entrypoints.openai.chat_profile import probe_chat_encoder
from atom.entrypoints.openai.serving import ChatModel, ServingContext
from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.serving import ScriptedServing
from atom.entrypoints.scripted.tokens import ScriptedTokenizer
from atom.model_engine.arg_utils import ServerConfig, parse_args, server_config_from_args
from tests.fakes.byte_tokenizer import byte_tokenizer

MODEL = "scripted"
# Seconds after which something that has to happen has failed to; far more than any machine needs.
PATIENCE = 120.0

# A small template of our own, with what qwen templates show: tools, calls, thoughts and a switch.
TEMPLATE = """\
{%- if tools %}<|role|>system
# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call like this:
<tool_call>
<function=name>
<parameter=key>
value
</parameter>
</function>
</tool_call><|end|>
{% endif %}
{%- for message in messages %}<|role|>{{ message.role }}
{%- if message.reasoning_content %}
<think>{{ message.reasoning_content }}</think>{% endif %}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
<function={{ call.function.name }}>
{%- for key, value in call.function.arguments.items() %}
<parameter={{ key }}>
{{ value }}
</parameter>
{%- endfor %}
</function>
</tool_call>
{%- endfor %}<|end|>
{% endfor %}
{%- if add_generation_prompt %}<|role|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}"""


def server_config(**changes: Any) -> ServerConfig:
    """The default server configuration, but for connections that stay open while a test is held up; with changes."""
    defaults = server_config_from_args(parse_args([]))
    return replace(defaults, **{"disable_uvicorn_access_log": True, "timeout_keep_alive": 600, **changes})


def scripted(
    *scripts: Script | str, max_model_len: int = 4096, tool_call_parser: str = "auto", **changes: Any
) -> ScriptedServing:
    """A context whose engine plays these scripts, one byte a token unless a script says otherwise."""
    tokenizer = byte_tokenizer(ScriptedTokenizer)
    encoder = JinjaChatEncoder({"default": TEMPLATE}, {}, "test template")
    return ScriptedServing(
        [script if isinstance(script, Script) else Script(text=script) for script in scripts or ("ok",)],
        tokenizer,
        ChatModel(encoder, probe_chat_encoder(encoder, tool_call_parser)),
        server_config(**changes),
        model_path=Path("."),
        folder=Path("."),
        served_model_names=(MODEL,),
        max_model_len=max_model_len,
    )


@dataclass
class LiveServer:
    """A server that runs, and how to talk to it. `exit_code` is set when it has stopped by itself."""

    url: str
    serving: ServingContext
    loop: asyncio.AbstractEventLoop
    client: httpx.Client
    signals: lifecycle.StopSignals
    exit_code: int | None = None

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """POST JSON."""
        return self.client.post(path, json=body, **options)

    def chat(self, content: str = "hi", *, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        """A chat request of one user message."""
        body = {"messages": [{"role": "user", "content": content}], **fields}
        return self.post("/v1/chat/completions", body, headers=headers)

    def complete(self, prompt: Any = "hi", *, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        """A completion request."""
        return self.post("/v1/completions", {"prompt": prompt, **fields}, headers=headers)

    def in_loop(self, function: Any, *arguments: Any) -> Any:
        """Call something that belongs to the server's event loop."""

        async def call() -> Any:
            return function(*arguments)

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(PATIENCE)


@contextmanager
def running(serving: ServingContext) -> Iterator[LiveServer]:
    """Serve in a thread; stopped at the end."""
    listening = lifecycle.bind_socket("127.0.0.1", 0)
    listening.listen(lifecycle.BACKLOG)
    port = listening.getsockname()[1]
    started = threading.Event()
    live: list[LiveServer] = []

    async def main() -> None:
        url = f"http://127.0.0.1:{port}"
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        server = LiveServer(url, serving, asyncio.get_running_loop(), client, lifecycle.StopSignals())
        live.append(server)
        started.set()
        server.exit_code = await lifecycle.serve(create_app(serving), serving, listening, server.signals)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert started.wait(PATIENCE), "the server did not start"
    server = live[0]
    try:
        yield server
    finally:
        server.client.close()
        with suppress(RuntimeError):  # it has stopped by itself, and closed its loop
            server.loop.call_soon_threadsafe(server.signals.first.set)
            server.loop.call_soon_threadsafe(server.signals.second.set)
        thread.join(PATIENCE)
        serving.close()
        assert not thread.is_alive(), "the server did not stop"


def script(name: str, **more: str) -> dict[str, str]:
    """Headers that choose a script."""
    return {"x-script-id": name, **more}


def error_of(response: httpx.Response, status: int = 400) -> dict[str, Any]:
    """The error object of a response that must have this status and the shape of the API that its path belongs to."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    if response.url.path.startswith("/v1/messages"):
        assert set(body) == {"type", "error", "request_id"} and body["type"] == "error", body
        assert set(body["error"]) == {"type", "message"}, body
        assert body["request_id"] == response.headers["request-id"] == response.headers["x-request-id"]
    else:
        assert set(body) == {"error"} and set(body["error"]) == {"message", "type", "param", "code"}, body
    assert body["error"]["message"] and "Traceback" not in response.text
    error: dict[str, Any] = body["error"]
    return error


def named_events(response: httpx.Response) -> list[tuple[str, Any]]:
    """Name and data of every event of a stream of named events, in order; comments are left out. Checks the framing."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.endswith("\n\n"), response.text[-80:]
    events = []
    for event in response.text[:-2].split("\n\n"):
        if event.startswith(":"):
            continue
        name, data = event.split("\n")
        assert name.startswith("event: ") and data.startswith("data: "), event
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        assert events[-1][1]["type"] == events[-1][0]
    return events


def frames_of(response: httpx.Response) -> list[str]:
    """The data of every frame of a stream, in order; comments are left out. Checks the framing."""
    text = response.text
    assert text.endswith("\n\n"), text[-80:]
    events = text[:-2].split("\n\n")
    frames = []
    for event in events:
        assert "\n" not in event, event
        if event.startswith(":"):
            continue
        assert event.startswith("data: ") and event != "data: ", event
        frames.append(event.removeprefix("data: "))
    return frames


def stream_json(response: httpx.Response) -> Sequence[Any]:
    """The chunks of a stream that must end with [DONE]."""
    frames = frames_of(response)
    assert frames[-1] == "[DONE]" and frames.count("[DONE]") == 1, frames[-3:]
    return [json.loads(frame) for frame in frames[:-1]]
