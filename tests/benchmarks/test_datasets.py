"""Each dataset end to end from small local files, and what is said about files that can not be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atom import builtin_model
from atom.benchmarks.datasets import DatasetError, draw_length, sample_requests
from atom.benchmarks.flags import parse_flags
from atom.benchmarks.hf_dataset import conversation_of
from atom.benchmarks.prompts import PromptWriter, SampleRequest, load_prompt_writer
from atom.tokenizer import Tokenizer
from tests.benchmarks.conftest import Bench, Serve
from tests.benchmarks.sse_server import DONE, Script, at_once, text, usage

TOKENIZER = Tokenizer.load(builtin_model.resolve("atom-tiny").path)
ANSWER = at_once(text("a"), text("b", "length"), usage(2), DONE)
SENTENCE = "the weather report names every city with more than a million people"


def answer_with_count(n: int, body: dict[str, Any]) -> Script:
    """A server that counts the prompt's tokens as ours does."""
    return at_once(text("a", "stop"), usage(1, len(TOKENIZER.encode(body["prompt"]))), DONE)


def turns(*texts: str) -> dict[str, Any]:
    names = ("human", "gpt")
    return {"conversations": [{"from": names[i % 2], "value": value} for i, value in enumerate(texts)]}


def sharegpt_file(folder: Path) -> Path:
    rows = [turns(f"{SENTENCE}, question {i}", f"{SENTENCE} {SENTENCE}") for i in range(5)]
    unusable = [turns("alone"), turns("x", SENTENCE), turns(SENTENCE, "x"), turns(SENTENCE * 200, SENTENCE), {"id": 1}]
    path = folder / "sharegpt.json"
    path.write_text(json.dumps(rows + unusable))
    return path


def burstgpt_file(folder: Path) -> Path:
    path = folder / "burst.csv"
    rows = ["5,ChatGPT,472,18,490,Conversation log", "45,GPT-4,30,12,42,Conversation log", "46,GPT-4,50,0,50,API log"]
    lines = ["Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type", *rows, "47,GPT-4,70,9,79,API log"]
    path.write_text("\n".join(lines) + "\n")
    return path


def sonnet_file(folder: Path) -> Path:
    path = folder / "sonnet.txt"
    path.write_text("\n".join(f"line {i} of a poem on rain and the sea" for i in range(40)) + "\n")
    return path


def options(*flags: str) -> Any:
    return parse_flags(["--model", "atom-tiny", *flags], "test")


def sample(number: int, *flags: str, writer: PromptWriter | None = None) -> list[SampleRequest]:
    return sample_requests(options(*flags), writer or PromptWriter(TOKENIZER), number)


def test_sharegpt(serve: Serve, bench: Bench, tmp_path: Path) -> None:
    server = serve(by_request=answer_with_count)
    flags = ["--dataset-name", "sharegpt", "--dataset-path", str(sharegpt_file(tmp_path)), "--num-prompts", "100"]
    result = bench(server, *flags)
    prompts = {exchange.body["prompt"] for exchange in server.log}
    assert prompts == {f"{SENTENCE}, question {i}" for i in range(5)}
    assert {exchange.body["max_tokens"] for exchange in server.log} == {len(TOKENIZER.encode(f"{SENTENCE} {SENTENCE}"))}
    assert (result["num_prompts"], result["completed"]) == (5, 5)
    assert "The dataset has 5 requests that can be used; --num-prompts asks for more." in result["printed"]
    assert result["total_input_tokens"] == sum(len(TOKENIZER.encode(prompt)) for prompt in prompts)


def test_sharegpt_order_and_output_length(tmp_path: Path) -> None:
    flags = ["--dataset-name", "sharegpt", "--dataset-path", str(sharegpt_file(tmp_path))]
    first = sample(3, *flags, "--seed", "1")
    assert sample(5, *flags, "--seed", "1")[:3] == first
    assert any(sample(5, *flags, "--seed", str(seed)) != sample(5, *flags, "--seed", "1") for seed in range(2, 6))
    assert {request.output_len for request in sample(9, *flags, "--sharegpt-output-len", "7")} == {7}


def test_burstgpt(serve: Serve, bench: Bench, tmp_path: Path) -> None:
    server = serve(by_request=answer_with_count)
    flags = ["--dataset-name", "burstgpt", "--dataset-path", str(burstgpt_file(tmp_path)), "--num-prompts", "6"]
    result = bench(server, *flags)
    lengths = [(len(TOKENIZER.encode(e.body["prompt"])), e.body["max_tokens"]) for e in server.log]
    assert sorted(lengths) == [(30, 12)] * 3 + [(70, 9)] * 3
    assert len({exchange.body["prompt"] for exchange in server.log}) == 6
    assert result["input_len_mismatch"] == {"prompts": 6, "mismatched": 0, "mean_difference": 0.0}


def test_sonnet(serve: Serve, bench: Bench, tmp_path: Path) -> None:
    server = serve(by_request=answer_with_count)
    lengths = ["--sonnet-input-len", "300", "--sonnet-prefix-len", "120", "--sonnet-output-len", "9"]
    flags = ["--dataset-name", "sonnet", "--dataset-path", str(sonnet_file(tmp_path)), "--num-prompts", "4"]
    result = bench(server, *flags, *lengths)
    prompts = [exchange.body["prompt"] for exchange in server.log]
    a_line = len(TOKENIZER.encode("\nline 10 of a poem on rain and the sea"))
    assert all(300 - 2 * a_line <= length <= 300 for length in result["input_lens"])
    assert {exchange.body["max_tokens"] for exchange in server.log} == {9}
    shared = prompts[0]
    for prompt in prompts:
        while not prompt.startswith(shared):
            shared = shared[:-1]
    assert 120 - a_line <= len(TOKENIZER.encode(shared)) <= 120 + a_line
    assert len(set(prompts)) == 4


def test_random(serve: Serve, bench: Bench) -> None:
    server = serve(by_request=answer_with_count)
    lengths = ["--random-input-len", "50", "--random-output-len", "20", "--random-prefix-len", "16"]
    result = bench(server, *lengths, "--random-range-ratio", "0.5", "--num-prompts", "70")
    assert result["total_input_tokens"] == sum(len(TOKENIZER.encode(e.body["prompt"])) for e in server.log)
    assert all(16 + 25 <= length <= 16 + 50 for length in result["input_lens"])
    assert all(10 <= exchange.body["max_tokens"] <= 20 for exchange in server.log)
    assert len({tuple(TOKENIZER.encode(e.body["prompt"])[:16]) for e in server.log}) == 1
    assert result["input_len_mismatch"]["mismatched"] == result["server_input_len_mismatch"]["mismatched"] == 0


def test_random_is_the_same_for_a_seed_however_many_are_asked_for() -> None:
    flags = ["--dataset-name", "random", "--random-input-len", "30", "--random-range-ratio", "0.5"]
    whole = sample(130, *flags)
    assert sample(130, *flags) == whole
    assert sample(5, *flags, "--num-prompts", "5") == whole[:5]
    assert sample(5, *flags, "--seed", "1") != whole[:5]


def test_lengths_reach_both_ends() -> None:
    generator = np.random.default_rng(0)
    assert {draw_length(10, 0.8, generator) for _ in range(200)} == {8, 9, 10}
    assert {draw_length(3, 0.0, generator) for _ in range(200)} == {1, 2, 3}
    assert {draw_length(100, 0.29, generator) for _ in range(3000)} == set(range(29, 101))
    assert draw_length(1, 0.0, generator) == 1


HF_ROWS = [{"question": f"{SENTENCE}, number {i}", "answer": f"{SENTENCE} again"} for i in range(6)]


def hf_folder(folder: Path) -> str:
    place = folder / "rows"
    place.mkdir()
    (place / "train.jsonl").write_text("\n".join(json.dumps(row) for row in HF_ROWS))
    (place / "test.jsonl").write_text(json.dumps({"question": f"{SENTENCE}, in the test split", "answer": SENTENCE}))
    return str(place)


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = pytest.importorskip("datasets", reason="comes with the bench extra")
    monkeypatch.setattr(module.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return module


def test_hf_from_a_folder(serve: Serve, bench: Bench, tmp_path: Path, datasets: Any) -> None:
    server = serve(by_request=answer_with_count)
    result = bench(server, "--dataset-name", "hf", "--dataset-path", hf_folder(tmp_path), "--num-prompts", "6")
    assert {exchange.body["prompt"] for exchange in server.log} == {row["question"] for row in HF_ROWS}
    assert {e.body["max_tokens"] for e in server.log} == {len(TOKENIZER.encode(f"{SENTENCE} again"))}
    assert result["completed"] == 6


def test_hf_splits_and_output_length(tmp_path: Path, datasets: Any) -> None:
    flags = ["--dataset-name", "hf", "--dataset-path", hf_folder(tmp_path), "--hf-output-len", "5"]
    (request,) = sample(9, *flags, "--hf-split", "test")
    assert (request.prompt, request.output_len) == (f"{SENTENCE}, in the test split", 5)
    with pytest.raises(DatasetError, match=r"no split nosuch; there are .*train"):
        sample(1, *flags, "--hf-split", "nosuch")


def test_hf_from_a_file_and_from_a_saved_dataset(tmp_path: Path, datasets: Any) -> None:
    rows = [turns(f"{SENTENCE} {i}", SENTENCE) for i in range(3)]
    (tmp_path / "talks.json").write_text(json.dumps(rows))
    datasets.Dataset.from_list(rows).save_to_disk(str(tmp_path / "saved"))
    expected = {f"{SENTENCE} {i}" for i in range(3)}
    for place in (tmp_path / "talks.json", tmp_path / "saved"):
        requests = sample(9, "--dataset-name", "hf", "--dataset-path", str(place))
        assert {request.prompt for request in requests} == expected


def test_hf_says_why_there_are_no_rows(tmp_path: Path, datasets: Any) -> None:
    (tmp_path / "table.xls").write_text("x")
    (tmp_path / "empty").mkdir()
    for place, reason in ((tmp_path / "table.xls", "the suffix is none of"), (tmp_path / "empty", "--dataset-path")):
        with pytest.raises(DatasetError, match=reason):
            sample(1, "--dataset-name", "hf", "--dataset-path", str(place))


@pytest.mark.parametrize(
    ("row", "pair"),
    [
        (turns("q", "a", "more"), ("q", "a")),
        ({"conversations": [{"from": "system", "value": "s"}, *turns("q", "a")["conversations"]]}, ("q", "a")),
        ({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, ("q", "a")),
        ({"prompt": "q", "completion": "a"}, ("q", "a")),
        ({"instruction": "q", "output": "a"}, ("q", "a")),
        ({"text": "q"}, ("q", "")),
        (turns("q"), None),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, None),
        ({"other": "q"}, None),
        ("text", None),
    ],
)
def test_layouts_of_a_row(row: Any, pair: tuple[str, str] | None) -> None:
    assert conversation_of(row) == pair


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("sharegpt", None, "can not be read"),
        ("sharegpt", "{", "not valid JSON"),
        ("sharegpt", '{"a": 1}', "holds a JSON array"),
        ("sharegpt", "[]", "no row of it can be used"),
        ("burstgpt", "a,b\n1,2\n", "no BurstGPT trace"),
        ("burstgpt", "Model,Request tokens,Response tokens\nChatGPT,3,4\n", "no row of it can be used"),
        ("burstgpt", "Model,Request tokens,Response tokens\nGPT-4,many,4\n", "no BurstGPT trace"),
        ("sonnet", "\n\n", "has no line of text"),
    ],
)
def test_files_that_can_not_be_used_are_named(tmp_path: Path, name: str, content: str | None, reason: str) -> None:
    path = tmp_path / "data"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DatasetError, match=reason) as raised:
        sample(1, "--dataset-name", name, "--dataset-path", str(path))
    assert str(path) in str(raised.value)


def test_sonnet_needs_room_for_its_instruction(tmp_path: Path) -> None:
    flags = ["--dataset-path", str(sonnet_file(tmp_path)), "--sonnet-input-len", "3", "--sonnet-prefix-len", "0"]
    with pytest.raises(DatasetError, match="--sonnet-input-len must be at least"):
        sample(1, "--dataset-name", "sonnet", *flags)


def test_the_chat_template_goes_around_any_datasets_prompts(serve: Serve, bench: Bench, tmp_path: Path) -> None:
    server = serve(by_request=answer_with_count)
    flags = ["--dataset-name", "sharegpt", "--dataset-path", str(sharegpt_file(tmp_path)), "--num-prompts", "2"]
    result = bench(server, *flags, "--use-chat-template")
    for exchange in server.log:
        assert SENTENCE in exchange.body["prompt"]
        assert exchange.body["prompt"].startswith("<|im_start|>")
    assert result["server_input_len_mismatch"]["mismatched"] == 0
    writer = load_prompt_writer("atom-tiny", use_chat_template=True, sends_messages=False)
    assert sample(2, *flags, writer=writer)[0].prompt in {exchange.body["prompt"] for exchange in server.log}
