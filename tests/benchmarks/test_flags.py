"""The flags are an interface: scripts depend on their names and defaults."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest

from atom.benchmarks.flags import FLAGS, api_path, base_url, make_parser, parse_flags

FROZEN: dict[str, Any] = {
    "backend": "vllm",
    "base-url": None,
    "host": "127.0.0.1",
    "port": 8000,
    "endpoint": "/v1/completions",
    "model": None,
    "served-model-name": None,
    "tokenizer": None,
    "trust-remote-code": False,
    "dataset-name": "sharegpt",
    "dataset-path": None,
    "num-prompts": 1000,
    "request-rate": math.inf,
    "burstiness": 1.0,
    "max-concurrency": None,
    "num-warmups": 1,
    "seed": 0,
    "ignore-eos": False,
    "logprobs": None,
    "best-of": 1,
    "use-chat-template": False,
    "random-input-len": 1024,
    "random-output-len": 128,
    "random-range-ratio": 1.0,
    "random-prefix-len": 0,
    "sharegpt-output-len": None,
    "sonnet-input-len": 550,
    "sonnet-output-len": 150,
    "sonnet-prefix-len": 200,
    "hf-subset": None,
    "hf-split": None,
    "hf-output-len": None,
    "percentile-metrics": ("ttft", "tpot", "itl"),
    "metric-percentiles": (99.0,),
    "goodput": (),
    "profile": False,
    "save-result": False,
    "save-detailed": False,
    "plot": False,
    "result-dir": None,
    "result-filename": None,
    "metadata": (),
    "disable-tqdm": False,
}
CHOICES = {
    "backend": "tgi vllm lmdeploy deepspeed-mii openai openai-chat tensorrt-llm scalellm sglang",
    "dataset-name": "sharegpt burstgpt sonnet random hf",
}


def test_names_and_defaults_are_frozen() -> None:
    assert {flag.name: flag.default for flag in FLAGS} == FROZEN
    assert {flag.name: " ".join(flag.choices) for flag in FLAGS if flag.choices} == CHOICES


@pytest.mark.parametrize("name", FROZEN)
def test_both_spellings_mean_the_same(name: str) -> None:
    flag = next(flag for flag in FLAGS if flag.name == name)
    examples = {"percentile-metrics": "e2el", "goodput": "ttft:5", "metadata": "a=b", "random-range-ratio": "0.5"}
    value = [] if flag.kind is bool else [flag.choices[0] if flag.choices else examples.get(name, "7")]
    parser = make_parser("test")
    dashes, underscores = (parser.parse_args([f"--{spelling}", *value]) for spelling in (name, name.replace("-", "_")))
    assert dashes == underscores
    assert getattr(dashes, flag.dest) != flag.default or flag.choices


def options(*flags: str) -> Any:
    return parse_flags(["--dataset-name", "random", *flags], "test")


def test_lists() -> None:
    found = options(
        "--metadata", "a=1", "gpu=2=x", "--goodput", "ttft:100", "e2el:2.5", "--metric-percentiles", "50, 99.9"
    )
    assert found.metadata == [("a", "1"), ("gpu", "2=x")]
    assert found.goodput == [("ttft", 100.0), ("e2el", 2.5)]
    assert found.metric_percentiles == (50.0, 99.9)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--num-prompts", "0"], "at least 1"),
        (["--num-prompts", "x"], "not a number"),
        (["--request-rate", "0"], "more than 0"),
        (["--request-rate", "nan"], "more than 0"),
        (["--burstiness", "-1"], "more than 0"),
        (["--max-concurrency", "0"], "at least 1"),
        (["--random-input-len", "0"], "at least 1"),
        (["--random-range-ratio", "1.5"], "between 0 and 1"),
        (["--percentile-metrics", "ttft,speed"], "'speed' is no metric"),
        (["--metric-percentiles", "101"], "between 0 and 100"),
        (["--goodput", "speed:1"], "'speed:1' is no target"),
        (["--metadata", "novalue"], "KEY=VALUE"),
        (["--backend", "nosuch"], "invalid choice"),
        (["--num-prompt", "5"], "unrecognized"),
        (["--endpoint", "/generate"], "ends in completions"),
        (["--backend", "openai-chat", "--endpoint", "/v1/x"], "ends in chat/completions"),
        (["--backend", "tgi", "--ignore-eos"], "tgi has no such option"),
        (["--backend", "tensorrt-llm", "--logprobs", "1"], "measured without"),
        (["--backend", "openai-chat", "--best-of", "2"], "no such option"),
        (["--dataset-name", "sharegpt"], "needs --dataset-path"),
        (["--dataset-name", "sonnet", "--dataset-path", "x", "--sonnet-input-len", "100"], "--sonnet-prefix-len"),
    ],
)
def test_what_can_not_be_run_is_refused(flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        options(*flags)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        ([], "/v1/completions"),
        (["--backend", "openai-chat"], "/v1/chat/completions"),
        (["--backend", "tgi"], "/generate_stream"),
        (["--backend", "tensorrt-llm"], "/v2/models/ensemble/generate_stream"),
        (["--backend", "openai-chat", "--endpoint", "/other/v1/chat/completions"], "/other/v1/chat/completions"),
    ],
)
def test_each_protocol_has_its_usual_path(flags: list[str], path: str) -> None:
    assert api_path(options(*flags)) == path


def test_addresses() -> None:
    assert base_url(options()) == "http://127.0.0.1:8000"
    assert base_url(options("--host", "::1", "--port", "1")) == "http://[::1]:1"
    assert base_url(options("--base-url", "https://example.org/", "--host", "x")) == "https://example.org"


def test_help_names_every_flag_and_the_command_needs_no_tensor_library() -> None:
    program = (
        "import sys\n"
        "from atom.benchmarks.benchmark_serving import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    print(sorted({'torch', 'datasets', 'matplotlib'} & set(sys.modules)))\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"
    for name in FROZEN:
        assert f"--{name}" in shown
