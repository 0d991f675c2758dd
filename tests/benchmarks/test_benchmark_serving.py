"""What a run does beside its load: profiler, plots, progress, the other name of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from atom import cli
from atom.benchmarks.benchmark_serving import main
from tests.benchmarks.conftest import Bench, Serve
from tests.benchmarks.sse_server import DONE, Script, SSEServer, at_once, text, usage

ANSWER = at_once(text("a"), text("b", "stop"), usage(2), DONE)


def flags(server: SSEServer, *more: str) -> list[str]:
    return ["--model", "atom-tiny", "--dataset-name", "random", "--base-url", server.url, "--num-prompts", "2", *more]


def test_profile_starts_and_stops_around_the_load(serve: Serve, bench: Bench) -> None:
    server = serve(ANSWER)
    server.others |= {"/start_profile": {"status": "on"}, "/stop_profile": {"status": "off", "trace_dir": "traces"}}
    printed = bench(server, "--profile")["printed"]
    assert [call for call in server.other_calls if "profile" in call] == ["POST /start_profile", "POST /stop_profile"]
    assert "Profiler: started: {'status': 'on'}" in printed
    assert "Profiler: stopped: {'status': 'off', 'trace_dir': 'traces'}" in printed


def test_a_profiler_that_does_not_start_ends_the_run_before_the_load(serve: Serve) -> None:
    server = serve(at_once(b'{"error": {"message": "no folder for traces"}}', status=400))
    with pytest.raises(SystemExit, match="start_profile: HTTP 400: no folder for traces"):
        main(flags(server, "--profile", "--num-warmups", "0"))
    assert [exchange.path for exchange in server.log] == ["/start_profile"]


def test_a_profiler_that_does_not_stop_does_not_cost_the_result(serve: Serve, bench: Bench) -> None:
    def script(n: int, body: dict[str, object]) -> Script:
        return ANSWER if body.get("prompt") else at_once(b"broken", status=500)

    server = serve(by_request=script)
    server.others["/start_profile"] = {"status": "on"}
    result = bench(server, "--profile")
    assert result["completed"] == 1
    assert "Profiler: not stopped:" in result["printed"]
    assert "HTTP 500: broken" in result["printed"]


def test_plots_are_written_beside_the_result(serve: Serve, bench: Bench, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="comes with the bench extra")
    bench(serve(ANSWER), "--plot", "--num-prompts", "5")
    for name in ("result.latency.png", "result.throughput.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "result.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "Successful requests:" in page


def test_plots_of_a_run_without_a_completed_request(serve: Serve, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="comes with the bench extra")
    with pytest.raises(SystemExit, match="no request completed"):
        main(flags(serve(at_once(DONE)), "--plot", "--result-dir", str(tmp_path), "--result-filename", "r.json"))
    assert (tmp_path / "r.html").is_file()


def test_a_progress_bar_counts_requests(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve(ANSWER)
    main(flags(server))
    assert "2/2" in capsys.readouterr().err
    main(flags(server, "--disable-tqdm"))
    assert capsys.readouterr().err == ""


def test_atom_bench_is_the_same_command(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["bench", *flags(serve(ANSWER))])
    assert "============ Serving Benchmark Result ============" in capsys.readouterr().out


def test_what_can_not_be_read_ends_with_a_message(serve: Serve) -> None:
    with pytest.raises(SystemExit, match=r"no tokenizer for \./nowhere"):
        main(flags(serve(ANSWER), "--tokenizer", "./nowhere"))
