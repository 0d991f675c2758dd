"""Drawing tokens on one GPU: rows of several kinds and numbers, the ways to cut the work, and where its time goes.

Kernels run in a graph, so that the host's part is not in a figure, but for those with "from the host" in their names.
Knows no engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from atom.model_ops.kernels.reference import sampling as plain
from atom.model_ops.kernels.triton import drawing, masks
from benchmarks.gpu_timing import seconds, seconds_in_a_graph

Parameters = tuple[torch.Tensor, ...]

# Spread of the logits, top-k, top-p, min-p. Real logits have few likely tokens; those of random weights are flat.
_CASES = {
    "top-k 50, top-p 0.9": (3.0, 50, 0.9, 0.0),
    "top-k 20": (3.0, 20, 1.0, 0.0),
    "top-p 0.95": (3.0, 0, 0.95, 0.0),
    "top-p 0.9, flat": (0.02, 0, 0.9, 0.0),
    "min-p 0.1": (3.0, 0, 1.0, 0.1),
    "no filter": (3.0, 0, 1.0, 0.0),
}
_FORMS = {
    "as it is": drawing.Form(),
    "16 warps look": drawing.Form(bounding_warps=16),
    "a sample of 8192": drawing.Form(sampled=8192),
    "a sample of 32768, 16 warps": drawing.Form(sampled=32768, bounding_warps=16),
    "4 warps survey": drawing.Form(warps=4),
    "16 warps gather": drawing.Form(gathering_warps=16),
    "4 warps gather": drawing.Form(gathering_warps=4),
    "parts of 2048, 4 warps": drawing.Form(part=2048, warps=4, gathering_warps=4),
    "parts of 8192, 16 warps": drawing.Form(part=8192, warps=16, gathering_warps=16),
}


def rows_of(case: str, rows: int, vocab: int, device: torch.device) -> tuple[torch.Tensor, Parameters]:
    """Logits in float32, as the product that makes them gives them, and parameters."""
    spread, top_k, top_p, min_p = _CASES[case]
    logits = spread * torch.randn(rows, vocab, device=device)
    ones = torch.ones(rows, device=device)
    return logits, (ones, top_k * ones.int(), top_p * ones, min_p * ones, torch.rand(rows, device=device))


def sample(device: torch.device, bandwidth: float, largest: int, vocab: int) -> list[dict[str, Any]]:
    """Each case with one row, some, and many; the reference beside many; the floor is one read."""
    found = []
    for rows in dict.fromkeys((1, min(32, largest), largest)):
        for case in _CASES:
            logits, given = rows_of(case, rows, vocab, device)
            name = f"{rows} x {vocab}, {case}"
            calls = 2 if rows > 1 else 10
            found.append(row(name, seconds_in_a_graph(call(logits, given), device, calls)))
            if rows == largest:
                by_torch = seconds(lambda x=logits, given=given: plain.sample(x, *given), device, 3)
                found.append(row(f"{name}, by torch", by_torch))
        found.append(row(f"{rows} x {vocab}, floor", 4 * rows * vocab / bandwidth))
    logits, given = rows_of("top-k 50, top-p 0.9", 1, vocab, device)
    found.append(row(f"1 x {vocab}, from the host", host_seconds(call(logits, given), device)))
    wide = logits.bfloat16().repeat(largest, 1)
    many = tuple(column.repeat(largest) for column in given)
    found.append(row(f"{largest} x {vocab}, bfloat16", seconds_in_a_graph(call(wide, many), device, 2)))
    return [*found, *kernels(device, largest, vocab)]


def sample_forms(device: torch.device, largest: int, vocab: int) -> list[dict[str, Any]]:
    """The cases that differ most, in every form."""
    found = []
    for rows in dict.fromkeys((1, largest)):
        for case in ("top-k 50, top-p 0.9", "top-p 0.95", "top-p 0.9, flat"):
            logits, given = rows_of(case, rows, vocab, device)
            for name, form in _FORMS.items():
                took = seconds_in_a_graph(call(logits, given, form), device, 2 if rows > 1 else 10)
                found.append(row(f"{rows} x {vocab}, {case}, {name}", took))
    return found


def mask_logits(device: torch.device, bandwidth: float, rows: int, vocab: int) -> list[dict[str, Any]]:
    """Every row with a mask: of half of the vocabulary and, as grammars have them, of few tokens or nearly all."""
    logits = torch.randn(rows, vocab, device=device).bfloat16()
    half = torch.randint(-(2**31), 2**31 - 1, (rows, -(-vocab // 32)), device=device).to(torch.int32)
    few, most = torch.zeros_like(half), torch.full_like(half, -1)
    few[:, ::1000], most[:, ::1000] = 4, -5
    where = torch.arange(rows, device=device)
    found = []
    for kind, bits in (("half", half), ("few allowed", few), ("few forbidden", most)):
        name = f"{rows} x {vocab}, {kind}"
        took = seconds_in_a_graph(lambda bits=bits: masks.mask_logits(logits, where, bits), device)
        found.append(row(name, took))
        found.append(
            row(f"{name}, by torch", seconds(lambda bits=bits: plain.mask_logits(logits, where, bits), device))
        )
    return [*found, row(f"{rows} x {vocab}, one write, floor", rows * vocab * (2 + 1 / 8) / bandwidth)]


def kernels(device: torch.device, rows: int, vocab: int) -> list[dict[str, Any]]:
    """Each kernel's time in one call; nothing on a CPU."""
    if device.type != "cuda":
        return []
    found = []
    for case in _CASES:
        logits, given = rows_of(case, rows, vocab, device)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            call(logits, given)()
            torch.cuda.synchronize()
        for event in profile.key_averages():
            if event.self_device_time_total > 0:
                found.append(row(f"{rows} x {vocab}, {case}: {event.key}", event.self_device_time_total / 1e6))
    return found


def call(logits: torch.Tensor, given: Parameters, form: drawing.Form | None = None) -> Callable[[], torch.Tensor]:
    """One draw of every row."""
    return lambda: drawing.sample_by(form or drawing.Form(), logits, *given)


def host_seconds(function: Callable[[], Any], device: torch.device, calls: int = 200) -> float:
    """What the host takes to launch a call."""
    for _ in range(3):
        function()
    if device.type != "cuda":
        calls = 1
    else:
        torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - begun) / calls


def row(name: str, took: float) -> dict[str, Any]:
    """Of the table."""
    return {"name": name, "value": 1e6 * took, "unit": "us"}
