"""Sampling in Triton against the reference, token for token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from atom.model_ops.kernels.reference import random as plain_random
from atom.model_ops.kernels.reference import sampling as plain
from atom.model_ops.kernels.reference import verification as plain_verification
from atom.model_ops.kernels.triton import drawing, masks, random, verification

_PARAMETERS = {
    "temperature": torch.tensor([0.3, 1.0, 2.5, 1.0, 0.7, 1.0]),
    "top_k": torch.tensor([0, 1, 3, 40, 2500, 0], dtype=torch.int32),
    "top_p": torch.tensor([1.0, 0.95, 1.0, 0.5, 0.9, 0.01]),
    "min_p": torch.tensor([0.0, 0.2, 0.0, 0.05, 0.0, 1.0]),
}

_BOUNDED = {
    "temperature": torch.tensor([1.0, 1.0, 2.5, 1.0, 0.7, 1.0]),
    "top_k": torch.tensor([0, 5, 0, 40, 90, 0], dtype=torch.int32),
    "top_p": torch.tensor([0.9, 1.0, 0.99, 0.5, 1.0, 0.5]),
    "min_p": torch.tensor([0.0, 0.0, 0.0, 0.05, 0.0, 0.3]),
}


def check_draws(device: torch.device) -> None:
    """Rows of every spread: few likely tokens, all alike, ties at the filters, half of the vocabulary impossible."""
    for vocab, spread, step in ((50, 1.0, 0.0), (3000, 4.0, 0.0), (5000, 0.02, 0.0), (3000, 1.0, 0.5)):
        logits = torch.randn(6, vocab) * spread
        if step:
            logits = (logits / step).round() * step
            logits[:, ::2] = float("-inf")
        order = torch.randperm(6)
        given = [column[order] for column in _PARAMETERS.values()] + [torch.rand(6)]
        wanted = plain.sample(logits.clone(), *given)
        kept = logits.clone()
        found = drawing.sample(logits.to(device), *(column.to(device) for column in given))
        assert torch.equal(found.cpu(), wanted), (vocab, spread, step, order.tolist())
        assert torch.equal(logits, kept)


def check_draws_by_bounds(device: torch.device) -> None:
    """Rows of several parts, room for few values: bounds that hold them, that are narrowed, that do not suffice."""
    form = drawing.Form(part=256, group=16, room=64, sampled=1024)
    rows, vocab = 6, 1100
    for kind in ("flat", "equal", "few values", "falling", "bf16, one far below", "few possible"):
        logits = torch.randn(rows, vocab) * (0.02 if kind == "flat" else 2.0)
        if kind == "equal":
            logits[:] = 1.5
        elif kind == "few values":
            logits = logits.round()
        elif kind == "falling":
            logits = logits.sort(dim=1, descending=True).values
        elif kind == "bf16, one far below":
            logits[:, 700] = -1e6
            logits = logits.bfloat16()
        elif kind == "few possible":
            logits[:, 7:-3] = float("-inf")
        order = torch.randperm(rows)
        given = [column[order] for column in _BOUNDED.values()] + [torch.rand(rows)]
        wanted = plain.sample(logits.float(), *given)
        found = drawing.sample_by(form, logits.to(device), *(column.to(device) for column in given))
        assert torch.equal(found.cpu(), wanted), (kind, order.tolist())


def check_draws_by_a_sample(device: torch.device) -> None:
    """A sample of a ninth of each row, whose bounds hold the threshold: in the interpreter no row may be searched."""
    rows, on_cpu = 3, device.type == "cpu"
    vocab = 9500 if on_cpu else 151_936
    form = drawing.Form(part=2048, room=2048, sampled=1024) if on_cpu else drawing.Form()
    random_numbers = torch.Generator().manual_seed(0)
    search = drawing.row_threshold
    if on_cpu:
        drawing.row_threshold = _no_search
    try:
        for kind, spread, top_p in (
            ("peaked", 3.0, 0.95),
            ("flat", 0.02, 0.9),
            ("falling", 2.0, 0.9),
            ("bfloat16", 3.0, 0.5),
            ("one far above", 3.0, 0.95),
        ):
            logits = spread * torch.randn(rows, vocab, generator=random_numbers)
            if kind == "falling":
                logits = logits.sort(dim=1, descending=True).values
            elif kind == "bfloat16":
                logits = logits.bfloat16()
            elif kind == "one far above":
                # Which makes what is estimated above the threshold uncertain; room only for what is near it.
                logits[:, 77] = torch.tensor([11.9, 12.1, 12.3]) + (0 if on_cpu else 4.5)
                form = replace(form, room=512) if on_cpu else form
            ones = torch.ones(rows)
            min_p = torch.tensor([0.0, 0.0, 0.01])
            given = (ones, 0 * ones.int(), top_p * ones, min_p, torch.rand(rows, generator=random_numbers))
            wanted = plain.sample(logits.float(), *given)
            found = drawing.sample_by(form, logits.to(device), *(column.to(device) for column in given))
            assert torch.equal(found.cpu(), wanted), kind
    finally:
        drawing.row_threshold = search


def _no_search(*_: object) -> None:
    raise AssertionError("the bounds do not hold the threshold")


def check_draws_in_a_view(device: torch.device) -> None:
    """Rows that do not follow each other in memory; a uniform just below one; a first token that is impossible."""
    wide = torch.full((3, 40), float("nan"), device=device)
    logits = wide[:, :10]
    logits[:] = float("-inf")
    logits[:, [2, 7]] = torch.tensor([0.0, 1.0], device=device)
    one, none = torch.ones(3, device=device), torch.zeros(3, device=device)
    uniform = torch.tensor([0.0, 0.5, 1 - 2**-24], device=device)
    assert drawing.sample(logits, one, none.int(), one, none, uniform).tolist() == [2, 7, 7]
    assert drawing.sample(logits[:0], one[:0], none[:0].int(), one[:0], none[:0], uniform[:0]).shape == (0,)


def check_draws_of_no_numbers(device: torch.device) -> None:
    """Logits without a largest have no right token, but one of the vocabulary all the same."""
    vocab, none, most = 130, float("nan"), float("inf")
    logits = torch.randn(6, vocab)
    logits[0], logits[1], logits[2], logits[3, 64:] = none, -most, most, none
    logits[4, [3, 77]], logits[5, 5] = most, none
    for start in (0, 3):
        given = [column.roll(start) for column in _PARAMETERS.values()] + [torch.rand(6)]
        found = drawing.sample(logits.to(device), *(column.to(device) for column in given))
        assert ((found >= 0) & (found < vocab)).all(), (start, found.tolist())


def check_uniforms(device: torch.device) -> None:
    seeds = torch.cat((torch.tensor([0, 1, -1, 2**62 + 12345, -(2**63)]), torch.randint(-(2**62), 2**62, (200,))))
    offsets = torch.cat((torch.tensor([0, 5, 2**40 + 3, 1, 2]), torch.randint(0, 5000, (200,))))
    found = random.philox_uniform(seeds.to(device), offsets.to(device)).cpu()
    assert torch.equal(found, plain_random.philox_uniform(seeds, offsets))
    assert random.philox_uniform(seeds[:0].to(device), offsets[:0].to(device)).shape == (0,)


def check_masks(device: torch.device) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for vocab in (70, 4096, 5000):
            logits = torch.randn(5, vocab).to(dtype)
            bits = torch.randint(-(2**31), 2**31, (3, -(-vocab // 32)), dtype=torch.int32)
            bits[0], bits[1, :-1] = 0, -1
            rows = torch.tensor([4, 0, 2])
            wanted = plain.mask_logits(logits.clone(), rows, bits)
            given = logits.to(device)
            assert masks.mask_logits(given, rows.to(device), bits.to(device)) is given
            assert torch.equal(given.cpu(), wanted)


def check_verification(device: torch.device) -> None:
    for longest in (1, 3, 8):
        drafts = torch.randint(0, 3, (40, longest))
        targets = torch.randint(0, 3, (40, longest + 1))
        targets[::2, :-1] = drafts[::2]
        numbers = torch.randint(0, longest + 1, (40,), dtype=torch.int32)
        wanted = plain_verification.verify_greedy(drafts, numbers, targets)
        found = verification.verify_greedy(drafts.to(device), numbers.to(device), targets.to(device))
        for mine, theirs in zip(found, wanted, strict=True):
            assert torch.equal(mine.cpu(), theirs)


SAMPLING_CHECKS: dict[str, Callable[[torch.device], None]] = {
    "draws": check_draws,
    "draws by bounds": check_draws_by_bounds,
    "draws by a sample": check_draws_by_a_sample,
    "draws in a view": check_draws_in_a_view,
    "draws of no numbers": check_draws_of_no_numbers,
    "uniforms": check_uniforms,
    "masks": check_masks,
    "verification": check_verification,
}
