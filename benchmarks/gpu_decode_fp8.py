"""Decode attention over an fp8 cache by its form: keys a tile, stages and warps.

Beside them the bf16 cache, and what reading takes at least. The forms are decode.choose_form's to choose from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from atom.model_ops.float8 import float8_dtype
from atom.model_ops.kernels.triton import decode
from atom.model_ops.kernels.triton.decode import Form
from benchmarks.gpu_decode import Batches, Layers, Model, decodes
from benchmarks.gpu_timing import seconds_in_a_graph

FP8_BATCHES: Batches = tuple((f"{count} of 1088", (1088,) * count) for count in (256, 128, 32, 8, 1))
# The one for large batches, that for small ones, and one between them.
FORMS = (Form(64, warps=2), Form(128), Form(64))


def decode_fp8(device: torch.device, bandwidth: float, model: Model, batches: Batches) -> list[dict[str, Any]]:
    """Microseconds a layer."""
    found = []
    kv_heads = model.heads[1]
    for name, contexts in batches:
        step = decodes(contexts, device)
        num_values = sum(contexts) * 2 * kv_heads * model.head_dim
        layers = Layers(model, step, torch.bfloat16, device)
        found.append(row(f"{name}, bf16 cache", seconds_in_a_graph(layers.attend, device) / model.layers))
        layers = Layers(model, step, float8_dtype(device), device)
        for form in FORMS:
            with only(form):
                value = seconds_in_a_graph(layers.attend, device) / model.layers
            found.append(row(f"{name}, {spelt(form)}", value))
        found.append(row(f"{name}, floor", num_values / bandwidth))
    return found


def row(name: str, seconds: float) -> dict[str, Any]:
    """Of the table."""
    return {"name": name, "value": 1e6 * seconds, "unit": "us a layer"}


def spelt(form: Form) -> str:
    """A form in few words."""
    return f"{form.tile} keys, {form.stages} stages, {form.warps} warps"


@contextlib.contextmanager
def only(form: Form) -> Iterator[None]:
    """Decode attention in this form, whatever suits the model."""
    chosen = decode.choose_form
    decode.choose_form = lambda dtype, padded, is_float8, is_large: form
    try:
        yield
    finally:
        decode.choose_form = chosen
