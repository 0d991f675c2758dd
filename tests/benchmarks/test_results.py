"""The result file: documented keys, names, and the forms it is written in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from atom.benchmarks.benchmark_serving import main
from atom.benchmarks.benchmark_utils import ENABLED_BY, convert_to_pytorch_benchmark_format
from atom.benchmarks.extras import MissingExtraError, need
from atom.benchmarks.flags import parse_flags
from tests.benchmarks.conftest import Bench, Serve
from tests.benchmarks.sse_server import DONE, SSEServer, at_once, text, usage

DOCS = Path(__file__).resolve().parents[2] / "docs" / "benchmarking.md"
TWO_TOKENS = at_once(text("a"), text("b", "stop"), usage(2, 8), DONE)
REFUSAL = at_once(b'{"error": {"message": "full"}}', status=503)
METRIC = re.compile(r"(mean|median|std|p[\d.]+)_(ttft|tpot|itl|e2el)_ms")


def base_flags(server: SSEServer, folder: Path) -> list[str]:
    load = ["--model", "atom-tiny", "--dataset-name", "random", "--num-warmups", "0", "--disable-tqdm"]
    return [*load, "--base-url", server.url, "--result-dir", str(folder)]


def documented_keys() -> set[str]:
    """The keys in the tables' first columns."""
    rows = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return {key for row in rows for key in re.findall(r"`([a-z_]+)`", row.split("|")[1])}


def test_every_key_is_documented_and_every_documented_key_is_there(serve: Serve, bench: Bench) -> None:
    flags = ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,99", "--goodput", "ttft:1000"]
    result = bench(serve(TWO_TOKENS), *flags)
    del result["printed"]
    metrics = {key for key in result if METRIC.fullmatch(key)}
    assert len(metrics) == 4 * 5
    chapter = DOCS.read_text(encoding="utf-8").partition("## Result file")[2]
    listed = {key for key in documented_keys() if f"`{key}`" in chapter}
    assert set(result) - metrics == listed


def test_without_details_and_with_metadata(serve: Serve, tmp_path: Path) -> None:
    flags = ["--num-prompts", "2", "--save-result", "--metadata", "gpu=none", "run=3"]
    main([*base_flags(serve(TWO_TOKENS), tmp_path), *flags])
    (path,) = tmp_path.glob("*.json")
    assert re.fullmatch(r"vllm-infqps-atom-tiny-\d{8}-\d{6}\.json", path.name)
    result = json.loads(path.read_text())
    assert (result["gpu"], result["run"], result["request_rate"], result["max_concurrency"]) == (
        "none",
        "3",
        "inf",
        None,
    )
    assert not {"ttfts", "itls", "errors"} & set(result)
    assert "mean_e2el_ms" not in result


def test_the_name_tells_rate_and_bound(serve: Serve, tmp_path: Path) -> None:
    flags = ["--num-prompts", "2", "--save-result", "--request-rate", "50", "--max-concurrency", "4"]
    main([*base_flags(serve(TWO_TOKENS), tmp_path), *flags])
    (path,) = tmp_path.glob("*.json")
    assert path.name.startswith("vllm-50qps-concurrency4-atom-tiny-")
    assert json.loads(path.read_text())["request_rate"] == 50.0


def test_a_failed_request_is_in_the_details_without_times(serve: Serve, bench: Bench) -> None:
    result = bench(serve(TWO_TOKENS, REFUSAL), "--num-prompts", "2", "--max-concurrency", "1")
    assert result["errors"] == ["", "HTTP 503: full"]
    assert result["ttfts"][1] is result["latencies"][1] is None
    assert (result["output_lens"], result["itls"][1], result["generated_texts"]) == ([2, 0], [], ["ab", ""])
    assert result["failures"] == {"HTTP 503: full": 1}


def test_nothing_completed_ends_with_status_1_after_the_report(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--num-prompts", "3", "--num-warmups", "1", "--save-result", "--result-filename", "r.json"]
    with pytest.raises(SystemExit, match="no request completed"):
        main([*base_flags(serve(REFUSAL), tmp_path), *flags])
    printed = capsys.readouterr().out
    assert "A warm-up request failed: HTTP 503: full" in printed
    assert "3 x HTTP 503: full" in printed
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["completed"], result["failed"], result["mean_ttft_ms"]) == (0, 3, None)


def test_lengths_that_differ_are_said(serve: Serve, bench: Bench) -> None:
    result = bench(serve(at_once(text("a", "stop"), usage(1, 11), DONE)), "--num-prompts", "4")
    assert result["server_input_len_mismatch"] == {"prompts": 4, "mismatched": 4, "mean_difference": 3.0}
    assert result["total_input_tokens"] == 44
    assert (
        "4 of 4 prompts have another length than the client's count, by the server's (+3.00 tokens" in result["printed"]
    )
    flags = ["--random-input-len", "3", "--use-chat-template"]
    asked = bench(serve(TWO_TOKENS), *flags)["input_len_mismatch"]
    assert asked["mismatched"] == 1
    assert asked["mean_difference"] > 0


def test_the_first_model_that_the_server_lists(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(TWO_TOKENS)
    flags = ["--dataset-name", "random", "--base-url", server.url, "--num-prompts", "1", "--disable-tqdm"]
    main(flags)
    assert server.log[0].body["model"] == "atom-tiny"
    assert len(server.log) == 2, "a warm-up and the request"
    assert server.log[0].body["prompt"] != server.log[1].body["prompt"]
    main([*flags, "--served-model-name", "other", "--model", "atom-tiny"])
    assert server.log[-1].body["model"] == "other"
    server.others["/v1/models"] = {"data": []}
    with pytest.raises(SystemExit, match="lists no model; give --model"):
        main(flags)


def test_pytorchs_form(serve: Serve, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(TWO_TOKENS)
    bench(server)
    assert not (tmp_path / "result.pytorch.json").exists()
    monkeypatch.setenv(ENABLED_BY, "1")
    result = bench(server)
    records = json.loads((tmp_path / "result.pytorch.json").read_text())
    by_name = {record["metric"]["name"]: record for record in records}
    assert by_name["mean_ttft_ms"]["metric"]["benchmark_values"] == [result["mean_ttft_ms"]]
    assert by_name["output_throughput"]["metric"]["benchmark_values"] == [result["output_throughput"]]
    assert "request_goodput" not in by_name
    assert by_name["mean_ttft_ms"]["model"] == {"name": "atom-tiny"}
    assert by_name["mean_ttft_ms"]["metric"]["extra_info"]["backend"] == "vllm"
    assert by_name["mean_ttft_ms"]["benchmark"]["extra_info"]["args"]["request_rate"] == "inf"


def test_pytorchs_form_is_only_made_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    options: Any = parse_flags(["--model", "m", "--dataset-name", "random"], "test")
    monkeypatch.delenv(ENABLED_BY, raising=False)
    assert convert_to_pytorch_benchmark_format(options, {"x": [1]}, {}) == []
    monkeypatch.setenv(ENABLED_BY, "1")
    (record,) = convert_to_pytorch_benchmark_format(options, {"x": [1, 2]}, {"y": float("inf")})
    assert record["metric"] == {"name": "x", "benchmark_values": [1, 2], "extra_info": {"y": "inf"}}


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(
        MissingExtraError, match=r"--plot needs the package no_such_package.*pip install 'atom\[bench\]'"
    ):
        need("no_such_package", "--plot")
