"""The command line: spellings, values, errors that one line can say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from atom_spec.settings import SETTINGS, Setting

from atom.model_engine.arg_utils import (
    SettingsParser,
    add_cli_args,
    config_from_args,
    parse_args,
    server_config_from_args,
)
from tests.test_config import write_model

VALUES = {
    "string": "x",
    "integer": "3",
    "number": "0.5",
    "bytes": "512M",
    "json": '{"a": 1}',
    "integers": "[1,2]",
    "path": "p",
    "boolean": None,
}


def value_for(setting: Setting) -> list[str]:
    """A value that the flag takes, as words of a command line; its default where any other is refused."""
    text = VALUES[setting.type] if setting.refuse is None else str(setting.default)
    if setting.choices and setting.refuse is None:
        text = setting.choices[-1]
    return [] if text is None else [text]


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.refuse is None], ids=lambda s: s.name)
def test_every_spelling_means_the_same(setting: Setting) -> None:
    parsed = [parse_args([flag, *value_for(setting)]) for flag in setting.flags]
    assert all(vars(p) == vars(parsed[0]) for p in parsed)
    assert list(vars(parsed[0])) == [setting.name], "a flag that is absent leaves nothing behind"


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.refuse is not None], ids=lambda s: s.name)
def test_later_features_are_declared_and_refused(setting: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    others = {
        "integer": "2",
        "number": "0.5",
        "string": setting.choices[-1] if setting.choices else "x",
        "integers": "[1]",
        "path": "p",
    }
    words = [setting.flags[0], *([] if setting.type == "boolean" else [others[setting.type]])]
    if setting.type == "boolean":
        with pytest.raises(ValueError, match=re.escape(str(setting.refuse))):
            config_from_args(parse_args(words), model="/")
        return
    with pytest.raises(SystemExit):
        parse_args(words)
    error = capsys.readouterr().err
    assert str(setting.refuse) in error
    assert setting.flags[0] in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "flag", ["--no-enable-prefix-caching", "--no-enable_prefix_caching", "--no_enable_prefix_caching"]
)
def test_booleans_that_are_on_can_be_turned_off(flag: str) -> None:
    assert parse_args([flag]).enable_prefix_caching is False
    assert parse_args([flag, "--enable_prefix_caching"]).enable_prefix_caching is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-num", "3"], "unrecognized arguments: --max-num 3; did you mean --max-num-seqs?"),
        (["--max_num_sek", "3"], "did you mean --max_num_seqs?"),
        (["--no-enable-eager"], "unrecognized arguments: --no-enable-eager"),
        (["--max-num-seqs", "0"], "--max-num-seqs/--max_num_seqs: 0 is less than 1"),
        (["--max-num-seqs", "1.5"], "'1.5' is not a whole number"),
        (["--max-num-seqs"], "expected one argument"),
        (["--gpu-memory-utilization", "nan"], "nan is not a finite number"),
        (["--kv-cache-memory", "2 pints"], "'2 pints' is no size"),
        (["--dtype", "int8"], "'int8' is not one of auto, float32, bfloat16"),
        (["--hf-overrides", "{"], "is not a JSON object"),
        (["--hf-overrides", "3"], "is not a JSON object"),
        (["--server-port", "65536"], "65536 is more than 65535"),
        (["--api-key", ""], "an empty string is no value"),
    ],
)
def test_a_wrong_command_line_ends_with_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_args(words, prog="atom")
    error = capsys.readouterr().err
    assert caught.value.code == 2
    assert message in error
    assert error.startswith("atom: error: ")
    assert error.count("\n") == 1


def test_special_values() -> None:
    parsed = parse_args(["--load_dummy", "--level", "0", "--served-model-name", "a", "b", "-tp", "1"])
    assert (parsed.load_dummy, parsed.level, parsed.served_model_name, parsed.tensor_parallel_size) == (
        "empty",
        0,
        ["a", "b"],
        1,
    )
    assert parse_args(["--load-dummy", "xavier"]).load_dummy == "xavier"


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("512M", 512 * 2**20), ("2GiB", 2 * 2**30), ("1.5g", 3 * 2**29), ("10MB", 10**7), ("1 KiB", 1024)],
)
def test_byte_sizes(text: str, size: int) -> None:
    assert parse_args(["--kv-cache-memory", text]).kv_cache_memory == size


def test_config_from_args(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m")
    parsed = parse_args(["--model", model, "--max_model_len", "32", "--no-enable-log-stats", "--host", "::1"])
    config = config_from_args(parsed, max_num_seqs=7)
    assert (config.model, config.max_model_len, config.max_num_seqs, config.enable_log_stats) == (model, 32, 7, False)
    assert config_from_args(parse_args([]), model=model).model == model


def test_server_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATOM_API_KEY", raising=False)
    plain = server_config_from_args(parse_args([]))
    assert (plain.host, plain.server_port, plain.api_key, plain.allowed_origins) == ("0.0.0.0", 8000, (), ())
    assert (plain.max_request_bytes, plain.sse_keep_alive, plain.drain_timeout) == (32 * 2**20, 15.0, 30.0)
    words = [
        "--api-key",
        "one",
        "--api_key",
        "two",
        "--allowed-origins",
        "http://a",
        "http://b",
        "--request-log",
        "l.jsonl",
    ]
    given = server_config_from_args(parse_args(words))
    assert given.api_key == ("one", "two")
    assert given.allowed_origins == ("http://a", "http://b")
    assert given.request_log == Path("l.jsonl")


def test_the_variable_stands_in_for_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_API_KEY", "x,y")
    assert server_config_from_args(parse_args([])).api_key == ("x", "y")
    assert server_config_from_args(parse_args(["--api-key", "z"])).api_key == ("z",)


def test_groups_can_be_chosen() -> None:
    parser = add_cli_args(SettingsParser(prog="bench"), groups=["model"])
    assert "--dtype" in parser._option_string_actions
    assert "--host" not in parser._option_string_actions
    with pytest.raises(ValueError, match="no such group of settings: modell"):
        add_cli_args(SettingsParser(prog="bench"), groups=["modell"])


def test_help_names_every_flag_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_args(["--help"])
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for setting in SETTINGS:
        assert all(flag in text for flag in setting.flags)
    assert "Default: 16384." in text
    assert "Refused for now: tensor parallelism is not implemented yet." in text
