from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atom.benchmarks.sweep import comparison_table, main, markdown_table, read_results
from tests.benchmarks.conftest import Serve
from tests.benchmarks.sse_server import DONE, SSEServer, at_once, text, usage

ANSWER = at_once(text("a"), text("b", "stop"), usage(2), DONE)


def flags(server: SSEServer, folder: Path) -> list[str]:
    load = ["--num-prompts", "3", "--num-warmups", "0", "--random-input-len", "8", "--disable-tqdm"]
    return [
        "--model",
        "atom-tiny",
        "--dataset-name",
        "random",
        "--base-url",
        server.url,
        "--result-dir",
        str(folder),
        *load,
    ]


def test_concurrencies_in_turn(serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="comes with the bench extra")
    server = serve(ANSWER)
    main(["--concurrencies", "1", "2", "--prompts-per-concurrency", "4", *flags(server, tmp_path)])
    results = [json.loads((tmp_path / f"concurrency-{n}.json").read_text()) for n in (1, 2)]
    assert [(r["max_concurrency"], r["num_prompts"], r["completed"]) for r in results] == [(1, 4, 4), (2, 8, 8)]
    assert {"mean_e2el_ms", "p99_ttft_ms", "p99_tpot_ms"} <= set(results[0])
    table = (tmp_path / "sweep.md").read_text()
    assert len(table.splitlines()) == 4
    assert table in capsys.readouterr().out
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_request_rates_in_turn(serve: Serve, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="comes with the bench extra")
    main(["--request_rates", "100", "inf", *flags(serve(ANSWER), tmp_path)])
    assert [result["request_rate"] for result in read_results(tmp_path)] == [100.0, "inf"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --concurrencies or --request-rates"),
        (["--concurrencies", "1", "--request-rates", "1"], "give --concurrencies or --request-rates"),
        (["--compare", "a", "b", "--concurrencies", "1"], "--compare takes two folders and nothing else"),
        (["--concurrencies", "0"], "at least 1"),
        (["--concurrencies", "1"], "needs --dataset-path"),
        (["--concurrencies", "1", "--nosuch"], "unrecognized"),
    ],
)
def test_what_can_not_be_run_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def result(bound: int | None, throughput: float, ttft: float | None) -> dict[str, Any]:
    return {
        "max_concurrency": bound,
        "request_rate": "inf",
        "request_throughput": throughput,
        "output_throughput": 10 * throughput,
        "total_token_throughput": 20 * throughput,
        "mean_ttft_ms": ttft,
    }


def test_two_folders_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rows in (("before", [result(4, 2.0, 100.0), result(1, 1.0, 50.0)]), ("after", [result(4, 3.0, 120.0)])):
        (tmp_path / name).mkdir()
        for i, row in enumerate(rows):
            (tmp_path / name / f"{i}.json").write_text(json.dumps(row))
    (tmp_path / "before" / "other.json").write_text("[]")
    main(["--compare", str(tmp_path / "before"), str(tmp_path / "after")])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:6] == ["4", "inf", "1.500 (better)", "1.500 (better)", "1.500 (better)", "1.200 (worse)"]
    assert cells[6] == "n/a"


def test_folders_without_a_common_load_or_a_result(tmp_path: Path) -> None:
    assert comparison_table([result(1, 1.0, 1.0)], [result(2, 1.0, 1.0)]) == "The two folders have no load in common."
    assert "1.000" in comparison_table([result(1, 1.0, None)], [result(1, 1.0, 1.0)])
    with pytest.raises(SystemExit, match="holds no result"):
        main(["--compare", str(tmp_path), str(tmp_path)])


def test_tables_are_aligned() -> None:
    assert markdown_table(["a", "long"], [["123", "4"]]).splitlines() == [
        "|   a | long |",
        "|----:|-----:|",
        "| 123 |    4 |",
    ]
