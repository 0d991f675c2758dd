"""Cases about seeds, log probabilities, what an evaluation asks for, and defaults."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from atom.builtin_model import resolve
from conformance.http.server import started
from tests.entrypoints.cases.registry import MODEL, Given, case, ok
from tests.entrypoints.live import PATIENCE, stream_json


@case("B43", "A seeded request has the same text whatever else is in the batch; no seed is another text each time.")
def _(given: Given) -> None:
    request = {"method": "POST", "path": given.input["A"]["path"], "body": given.input["A"]["body"]}

    def text(**changes: object) -> str:
        return str(ok(given.ask(request, **changes))["choices"][0]["text"])

    with ThreadPoolExecutor(8) as pool:
        seeded = []
        for _ in range(3):
            crowd = [pool.submit(text, seed=None, prompt=f"{number} things:") for number in range(8)]
            seeded.append(text())
            [other.result() for other in crowd]
    assert len(set(seeded)) == 1
    assert text(seed=12) != seeded[0]
    assert len({text(seed=None) for _ in range(3)}) == 3


@case(
    "B45", "Log probabilities: one entry a token in every array, joined tokens are the text, streamed equal to whole."
)
def _(given: Given) -> None:
    streamed, whole, chat = given.requests
    answer = ok(given.ask(whole))
    logprobs = answer["choices"][0]["logprobs"]
    num = answer["usage"]["completion_tokens"]
    assert {len(logprobs[key]) for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset")} == {num}
    text = answer["choices"][0]["text"]
    assert "".join(logprobs["tokens"]) == text
    ends = [sum(map(len, logprobs["tokens"][:place])) for place in range(num)]
    assert logprobs["text_offset"] == ends
    for token, value, top in zip(*(logprobs[key] for key in ("tokens", "token_logprobs", "top_logprobs")), strict=True):
        assert top[token] == value
    joined: dict[str, list[object]] = {key: [] for key in logprobs}
    for chunk in stream_json(given.ask(streamed)):
        for key, values in (chunk["choices"][0]["logprobs"] or {}).items():
            joined[key] += values
    assert joined == logprobs
    entries = []
    for chunk in stream_json(given.ask(chat)):
        entries += (chunk["choices"][0]["logprobs"] or {"content": []})["content"]
    assert entries and all(len(entry["top_logprobs"]) == 2 for entry in entries)


@case(
    "B46",
    "A token's bytes are its own, also inside a character; joined they are the text. Without logprobs it is null.",
)
def _(given: Given) -> None:
    request = given.requests[0]
    choice = ok(given.ask(request))["choices"][0]
    entries = choice["logprobs"]["content"]
    raw = bytes(byte for entry in entries for byte in entry["bytes"])
    assert raw.decode(errors="replace").rstrip("\ufffd") == choice["message"]["content"].rstrip("\ufffd")
    for entry in entries:
        values = [top["logprob"] for top in entry["top_logprobs"]]
        assert len(values) == 3 and values == sorted(values, reverse=True)
    assert ok(given.ask(request, logprobs=False, top_logprobs=None))["choices"][0]["logprobs"] is None
    parts = given.play(script="compass", logprobs=True, top_logprobs=0)
    (played,) = ok(parts)["choices"]
    pieces = [bytes(entry["bytes"]) for entry in played["logprobs"]["content"]]
    assert b"".join(pieces).decode() == played["message"]["content"] == "\U0001f9ed" and len(pieces) == 4


@case(
    "B87",
    "Several prompts are several choices in order, a list of ids is one prompt; no prompts are a 400.",
)
def _(given: Given) -> None:
    *right, none, empty = given.requests
    for request, num in zip(right, (2, 1, 2, 1), strict=True):
        answer = ok(given.ask(request))
        assert [choice["index"] for choice in answer["choices"]] == list(range(num))
        prompts = request["body"]["prompt"]
        if num > 1:
            alone = [ok(given.ask(request, prompt=prompt))["usage"]["prompt_tokens"] for prompt in prompts]
            assert answer["usage"]["prompt_tokens"] == sum(alone)
    assert given.ask(none).status_code == 400
    assert len(ok(given.ask(empty))["choices"]) == 1


@case(
    "B88",
    "Echoed prompts are scored: one entry a token, the first null; a token's value is the same in both places.",
)
def _(given: Given) -> None:
    for request in given.requests:
        answer = ok(given.ask(request))
        choice, usage, prompt = answer["choices"][0], answer["usage"], request["body"]["prompt"]
        logprobs = choice["logprobs"]
        num = usage["prompt_tokens"] + usage["completion_tokens"]
        assert {len(logprobs[key]) for key in ("tokens", "token_logprobs", "top_logprobs")} == {num}
        assert logprobs["token_logprobs"][0] is None and logprobs["top_logprobs"][0] is None
        assert None not in logprobs["token_logprobs"][1:]
        for place in range(1, num):
            top = logprobs["top_logprobs"][place]
            value = top.get(logprobs["tokens"][place])
            assert value in (None, logprobs["token_logprobs"][place])
        if request["body"]["max_tokens"] == 1:
            assert logprobs["token_logprobs"][-1] == max(logprobs["top_logprobs"][-1].values())  # temperature 0
        first = prompt[0] if isinstance(prompt, list) else prompt
        if isinstance(first, str):
            assert choice["text"].startswith(first)


@case(
    "B89",
    "A chat prompt has the special tokens that the template writes and no more; a plain prompt those of the tokenizer.",
)
def _(given: Given) -> None:
    chat, plain = given.requests
    for begins in (True, False):
        ok(given.play(chat, script="BOS" if begins else "ok"))
        ids = given.scripted.serving.scripted_engine.requests[-1].prompt_token_ids  # type: ignore[attr-defined]  # the scripted context has it
        bos = given.scripted.serving.tokenizer.token_to_id("<|begin|>")
        assert ids.count(bos) == int(begins)
    ids = ok(given.model.post("/tokenize", json={"prompt": plain["body"]["prompt"]}))["tokens"]
    assert ok(given.ask(plain))["usage"]["prompt_tokens"] == len(ids)
    assert ok(given.ask(plain, prompt=ids))["choices"] == ok(given.ask(plain))["choices"]


@case(
    "B91",
    "The model's own sampling defaults hold where a request says nothing, stand in the log, and else give way.",
)
def _(given: Given) -> None:
    request, other = given.requests
    with TemporaryDirectory() as folder:
        model = Path(folder, MODEL)
        shutil.copytree(resolve(MODEL).path, model)
        defaults = {"temperature": 0.1, "top_k": 1, "top_p": 0.001, "repetition_penalty": 1.05}
        path = model / "generation_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **defaults}))
        with (
            started(Path(folder), model=str(model)) as server,
            httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
        ):

            def text(body: dict[str, object], **changes: object) -> str:
                whole = {**body, "model": None, **changes}
                return str(ok(client.post(request["path"], json=whole))["choices"][0]["text"])

            assert text(request["body"]) == text(other["body"])  # top_k of the file is 1
            free = {"top_k": -1, "top_p": 1}
            assert text(request["body"], **free) != text(other["body"], **free)
            assert "repetition_penalty" in server.log.read_text() and "top_k" in server.log.read_text()
