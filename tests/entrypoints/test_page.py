"""The page at / as files over HTTP: what is served, with which headers, and what the files must not hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest

from atom.entrypoints.openai.page import INDEX, page_files
from tests.entrypoints.live import MODEL, LiveServer, error_of, running, scripted

FILES = {name: content.decode() for name, content in page_files().items()}
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(scripted("Hello.")) as live:
        yield live


class Elements(HTMLParser):
    """Every element of the page with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] or "" for _, attributes in self.found if attribute in attributes]


ELEMENTS = Elements(FILES[INDEX])


def test_page_and_assets_have_their_types_and_the_policy(server: LiveServer) -> None:
    types = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
    paths = {"/": "text/html; charset=utf-8"}
    paths |= {f"/assets/{name}": types[name.rpartition(".")[2]] for name in FILES if name != INDEX}
    for path, media_type in paths.items():
        response = server.client.get(path)
        head = server.client.head(path)
        assert response.status_code == head.status_code == 200 and response.content and not head.content
        assert response.headers["content-type"] == head.headers["content-type"] == media_type
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';") and "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
    assert "content-security-policy" in server.client.get("/docs").headers


def test_the_model_stands_in_the_page(server: LiveServer) -> None:
    assert f">{MODEL}<" in server.client.get("/").text


@pytest.mark.parametrize("name", ["nothing.js", INDEX, "../page.py", "..%2fpage.py", "%2e%2e/page.py", "page.css/", ""])
def test_nothing_else_is_an_asset(server: LiveServer, name: str) -> None:
    assert error_of(server.client.get(f"/assets/{name}"), 404)["code"] == "not_found"


def test_a_key_is_for_the_figures_and_not_for_the_page() -> None:
    with running(scripted("Hello.", api_key=("secret",))) as live:
        page = live.client.get("/")
        assert page.status_code == 200 and MODEL not in page.text
        assert all(live.client.get(f"/assets/{name}").status_code == 200 for name in FILES if name != INDEX)
        assert error_of(live.client.get("/status"), 401)
        assert live.client.get("/status", headers={"authorization": "Bearer secret"}).json()["models"] == [MODEL]


def test_a_name_is_escaped() -> None:
    serving = scripted("Hello.")
    serving.served_model_names = ('<b>"org"</b>',)
    with running(serving) as live:
        text = live.client.get("/").text
    assert "<b>" not in text and "&lt;b&gt;&quot;org&quot;&lt;/b&gt;" in text


def test_the_status_is_what_the_contract_says_and_counts(server: LiveServer) -> None:
    contract = server.client.get("/openapi.json").json()
    schema = {"$ref": "#/components/schemas/ServerStatus", "components": contract["components"]}
    before = server.client.get("/status").json()
    jsonschema.Draft202012Validator(schema).validate(before)
    assert before["state"] == "ok" and before["models"] == [MODEL] and before["max_model_len"] == 4096
    assert before["chat"] == {
        "tool_call_format": "qwen",
        "reasoning_dialect": "think",
        "thinking_switch": "enable_thinking",
        "reasoning_efforts": [],
    }
    server.chat()
    after = server.client.get("/status").json()
    grown = {name: after["load"][name]["count"] - before["load"][name]["count"] for name in DURATIONS}
    assert grown == {"time_to_first_token": 1, "inter_token_latency": len("Hello.") - 1}
    assert after["load"]["time_to_first_token"]["seconds"] > before["load"]["time_to_first_token"]["seconds"]


def test_the_access_log_leaves_the_polls_of_the_page_out(caplog: pytest.LogCaptureFixture) -> None:
    serving = scripted("Hello.", api_key=("secret",))
    serving.server = replace(serving.server, disable_uvicorn_access_log=False)
    with caplog.at_level("INFO", "uvicorn.access"), running(serving) as live:
        live.client.get("/status", headers={"authorization": "Bearer secret"})
        live.client.get("/status")
        live.client.get("/health")
    lines = [record.getMessage() for record in caplog.records if record.name == "uvicorn.access"]
    assert [line.split('"', 1)[1] for line in lines if "/openapi.json" not in line] == [
        'GET /status HTTP/1.1" 401',
        'GET /health HTTP/1.1" 200',
    ]


DURATIONS = ("time_to_first_token", "inter_token_latency")


def test_whatever_the_files_refer_to_is_among_them() -> None:
    wanted = {value.removeprefix("assets/") for name in ("src", "href") for value in ELEMENTS.values(name)}
    wanted -= {"docs", "openapi.json", "metrics", "status"}
    for name in SCRIPTS:
        wanted |= set(re.findall(r'from "\./([^"]+)"', FILES[name]))
    assert wanted == set(FILES) - {INDEX}


@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_comes_from_elsewhere(name: str) -> None:
    text = FILES[name].replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?:|//[\w.-]+\.\w+/|@import|url\(", text)


def test_no_script_and_no_style_stands_in_the_page() -> None:
    scripts = [attributes for tag, attributes in ELEMENTS.found if tag == "script"]
    assert scripts == [{"type": "module", "src": "assets/main.js"}]
    assert not [tag for tag, _ in ELEMENTS.found if tag in ("style", "iframe", "object", "base")]
    names = {name for _, attributes in ELEMENTS.found for name in attributes}
    assert not [name for name in names if name == "style" or name.startswith("on")]


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_never_becomes_html_or_code(name: str) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|srcdoc"
    )
    assert not re.search(forbidden, FILES[name])


def test_every_field_has_a_label() -> None:
    labelled = ELEMENTS.values("for")
    fields = [attributes["id"] for tag, attributes in ELEMENTS.found if tag in ("input", "textarea", "select")]
    assert sorted(labelled) == sorted(str(field) for field in fields)
    ids = ELEMENTS.values("id")
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'byId\("([\w-]+)"\)', "".join(FILES[name] for name in SCRIPTS))) <= set(ids)


@needs_node
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_valid(name: str) -> None:
    assert NODE is not None
    command = [NODE, "--check", "--input-type=module", "-"]
    done = subprocess.run(command, input=FILES[name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def in_node(name: str, body: str) -> Any:
    """What `body` returns, with everything that a script exports in `it`. Only for scripts that import nothing."""
    assert NODE is not None
    address = "data:text/javascript," + quote(FILES[name])
    code = f'const it = await import("{address}");\nconsole.log(JSON.stringify((() => {{ {body} }})()));'
    done = subprocess.run([NODE, "--input-type=module", "-"], input=code, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_frames_come_out_whole_at_every_cut() -> None:
    text = ': ping\n\ndata: {"a": 1}\n\nevent: x\ndata: one\ndata: two\r\n\r\ndata: [DONE]\n\n'
    got = in_node(
        "frames.js",
        f"""
        const text = {json.dumps(text)}, seen = new Set();
        for (let cut = 0; cut <= text.length; cut++) {{
          const reader = new it.FrameReader();
          seen.add(JSON.stringify([...reader.feed(text.slice(0, cut)), ...reader.feed(text.slice(cut))]));
        }}
        return [...seen].map(JSON.parse);""",
    )
    assert got == [['{"a": 1}', "one\ntwo", "[DONE]"]]


@needs_node
def test_an_answer_adds_up_and_leaves_cut_calls_out() -> None:
    got = in_node(
        "answer.js",
        """
        const answer = new it.Answer(), delta = (value) => answer.apply({choices: [{delta: value}]});
        delta({role: "assistant", content: ""});
        delta({reasoning_content: "Hm.", reasoning: "Hm."});
        delta({content: "Look."});
        delta({tool_calls: [{index: 0, id: "a", function: {name: "f", arguments: ""}}]});
        delta({tool_calls: [{index: 0, function: {arguments: "{}"}}]});
        delta({tool_calls: [{index: 1, id: "b", function: {name: "g", arguments: "{"}}]});
        const usage = {prompt_tokens: 1, completion_tokens: 2};
        answer.apply({choices: [{delta: {}, finish_reason: "length"}], usage});
        return [answer.message(), answer.figures(), it.pretty('{"a":1}'), it.pretty('{"a":')];""",
    )
    message, figures, whole, cut = got
    assert message == {
        "role": "assistant",
        "content": "Look.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert figures == ["2 tokens", "1 prompt token", "cut off at the token limit"]
    assert whole == '{\n  "a": 1\n}' and cut == '{"a":'


@needs_node
def test_an_answer_that_ended_by_itself_keeps_calls_that_are_no_json() -> None:
    """Some formats let text pass as arguments that is no JSON."""
    got = in_node(
        "answer.js",
        """
        return ["tool_calls", "length", null].map((finish) => {
          const answer = new it.Answer();
          ["city: Oslo", "{}"].forEach((text, index) => {
            const call = {index, id: "c", function: {name: "f", arguments: text}};
            answer.apply({choices: [{delta: {tool_calls: [call]}, finish_reason: finish}]});
          });
          return answer.message().tool_calls.map((call) => call.function.arguments);
        });""",
    )
    assert got == [["city: Oslo", "{}"], ["{}"], ["{}"]]


@needs_node
def test_rates_forget_the_totals_of_another_server() -> None:
    got = in_node(
        "rates.js",
        """
        const rates = new it.Rates(), out = [];
        const add = (time, tokens, count) =>
          rates.add(time, {prompt_tokens: tokens, latency: {count, seconds: count * 0.25}});
        add(0, 100, 1); out.push(rates.perSecond("prompt_tokens"), rates.mean("latency"));
        add(2, 120, 3); out.push(rates.perSecond("prompt_tokens"), rates.mean("latency"));
        add(100, 120, 3); add(102, 122, 3); out.push(rates.perSecond("prompt_tokens"), rates.mean("latency"));
        add(104, 0, 0); out.push(rates.perSecond("prompt_tokens"));
        return out;""",
    )
    assert got == [None, None, 10, 0.25, 1, None, None]


@needs_node
def test_the_command_for_a_shell(server: LiveServer) -> None:
    content = 'It\'s $HOME `x` \\ "quoted"\nsecond line'
    request = {"messages": [{"role": "user", "content": content}]}
    url = f"{server.url}/v1/chat/completions"
    command = in_node("curl.js", f"return it.curlCommand({json.dumps(url)}, {json.dumps(request)}, true);")
    assert "$OPENAI_API_KEY" in command
    printing = command.replace("curl -N", "printf '%s\\0'", 1)
    done = subprocess.run(["bash", "-c", printing], capture_output=True, text=True, env={"OPENAI_API_KEY": "k"})
    words = done.stdout.split("\0")
    assert words[0] == url and "Authorization: Bearer k" in words
    assert json.loads(words[words.index("-d") + 1]) == request
