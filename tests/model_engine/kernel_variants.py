"""Which forms of the Triton kernels a GPU's engine would compile while requests wait: none, or a warm-up lacks a step.

`python -m tests.model_engine.kernel_variants [SETTING=VALUE...]` prints a line for each, then how many forms the start
asked for and how many the steps of a server did. A runner on the CPU, for a GPU that is not there: nothing is compiled
or launched, results are zeros.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import triton
from numpy.typing import NDArray

from atom.model_engine import memory_profile
from atom.model_engine.device_copies import pack
from atom.model_engine.model_runner import ModelRunner
from atom.model_engine.warm_up import gpu_batches
from atom.model_ops.kernels.table import TABLE
from tests.kernels.triton.compiled import TARGETS, AbsentDevice
from tests.model_engine.graphs_on_cpu import no_gpu
from tests.model_engine.random_steps import run_random_steps
from tests.models.drive import Driver, make_runner
from tests.models.tiny import make_model, save_model

# Prompts up to 256 tokens run in graphs, longer ones and steps of several do not.
_SETTINGS = {
    "dtype": "bfloat16", "max_num_seqs": 20, "max_model_len": 512, "max_num_batched_tokens": 4096, "block_size": 16,
    "cudagraph_prefill_sizes": (16, 256), "kv_cache_memory": 1 << 24, "level": 0,
}  # fmt: skip
# Heads enough for the largest step to have more programs than a GPU takes at once.
_SHAPE = {
    "hidden_size": 128, "head_dim": 64, "num_attention_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 1,
    "max_position_embeddings": 512,
}  # fmt: skip
_LENGTHS = (1, 2, 5, 16, 17, 100, 300, 500)
_STEPS = 60


class Forms:
    """Forms of kernels that launches ask for, by name and by what they are specialised on."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()

    def note(self, *, key: str, fn: Any, **rest: Any) -> bool:
        """Triton's hook before it compiles; true has it neither compile nor launch."""
        self.seen.add((fn.name, key))
        return True


def packed(arrays: Sequence[NDArray[np.int64]], device: torch.device) -> list[torch.Tensor]:
    """Where arrays lie after one copy to a GPU."""
    whole, places = pack(arrays)
    tensor = torch.from_numpy(whole).to(device)
    return [tensor[place] for place in places]


def without_a_gpu(patch: pytest.MonkeyPatch) -> None:
    """A CPU stands for a GPU with Triton's kernels; what they do not write is zeros, also products of the library."""
    no_gpu(patch)
    operations = (name for name, backends in TABLE.items() if "triton" in backends)
    patch.setenv("ATOM_KERNELS", ",".join(f"{name}=triton" for name in operations))
    for name in ("synchronize", "max_memory_allocated", "memory_reserved"):
        patch.setattr(torch.cuda, name, lambda *given: 0)
    patch.setattr("atom.model_ops.kernels.triton.fresh_prefill._is_hopper", lambda: True)
    patch.setattr("atom.model_engine.input_batch.upload_packed", packed)
    empty = torch.empty
    patch.setattr(torch, "empty", lambda *given, **named: empty(*given, **named).zero_())
    patch.setattr(torch, "empty_like", torch.zeros_like)
    patch.setattr(F, "linear", lambda x, weight, bias=None: x.new_zeros(len(x), len(weight)))
    triton.runtime.driver.set_active(AbsentDevice(TARGETS["sm90"][0]))


def start(**settings: Any) -> ModelRunner:
    """A runner that has run what it runs before its first request."""
    with tempfile.TemporaryDirectory() as folder:
        save_model(make_model("qwen3", **_SHAPE), Path(folder))
        runner = make_runner(folder, load_dummy="zero", **{**_SETTINGS, **settings})
    memory = runner.model, runner.kernels, runner.config, runner.cache_dtype, runner.device
    with torch.inference_mode():
        memory_profile.run_largest_step(*memory)
        runner.num_blocks = runner._make_cache()
    runner.warm_up()
    for batch in gpu_batches(runner.config, runner.num_blocks):
        runner.run(batch, in_graphs=False).result()
    return runner


def main(settings: dict[str, str]) -> None:
    forms, served = Forms(), Forms()
    with pytest.MonkeyPatch.context() as patch:
        without_a_gpu(patch)
        patch.setattr(triton.knobs.runtime, "jit_cache_hook", forms.note)
        runner = start(**settings)
        patch.setattr(triton.knobs.runtime, "jit_cache_hook", served.note)
        run_random_steps(Driver(runner), 1, _STEPS, _LENGTHS)
    for name, key in sorted(served.seen - forms.seen):
        print(name, key)
    print(len(forms.seen), len(served.seen))


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
