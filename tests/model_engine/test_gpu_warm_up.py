"""On a GPU: no request waits for a kernel to be compiled."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

import triton

from atom.config import Config
from tests.model_engine.random_steps import run_random_steps
from tests.models.drive import Driver, make_runner

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "settings", [{}, {"kv_cache_dtype": "fp8", "quantization": "fp8"}, {"enforce_eager": True}, {"dtype": "float32"}]
)
def test_no_kernel_is_compiled_after_the_start(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "dtype": "bfloat16", "device": "cuda", "max_num_seqs": 20, "max_model_len": 512, "kv_cache_memory": 1 << 28,
        "max_num_batched_tokens": 4096, "block_size": 16, "cudagraph_prefill_sizes": (16, 256),
    }  # fmt: skip
    runner = make_runner(Config.resolve("atom-tiny").model_path, **{**given, **settings})
    runner.warm_up()
    compiled: list[str] = []
    monkeypatch.setattr(
        triton.knobs.runtime, "jit_post_compile_hook", lambda *, key, fn, **rest: compiled.append(f"{fn.name} {key}")
    )
    run_random_steps(Driver(runner), 3, 150, (1, 2, 5, 16, 17, 100, 300, 480))
    assert compiled == []
