"""Labels of steps: their grammar, and that they can be read back into the batch's sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.step_label import step_label


def batch_of(decodes: list[tuple[int, int]], prefills: list[tuple[int, int]]) -> ScheduledBatch:
    """Rows as (tokens computed now, tokens computed before)."""
    rows = np.array([*decodes, *prefills], dtype=np.int32).reshape(-1, 2)
    num_tokens = int(rows[len(decodes) :, 0].sum())
    return ScheduledBatch(
        step=0,
        slots=np.arange(len(rows), dtype=np.int32),
        query_lens=rows[:, 0].copy(),
        context_lens=rows[:, 1].copy(),
        samples=np.ones(len(rows), dtype=np.bool_),
        num_decodes=len(decodes),
        prefill_token_ids=np.zeros(num_tokens, dtype=np.int32),
        new_blocks=np.empty((0, 3), dtype=np.int32),
    )


@pytest.mark.parametrize(
    ("decodes", "prefills", "expected"),
    [
        ([], [(7, 0)], "prefill[bs=1 tok=7 ctx=7]"),
        ([], [(7, 16)], "prefill[bs=1 tok=7 ctx=23]"),
        ([], [(7, 0), (5, 8)], "prefill[bs=2 tok=12 ctx=[7, 13]]"),
        ([], [(1, 0)] * 5, "prefill[bs=5 tok=5 ctx=[1, 1, 1, 1, 1]]"),
        ([], [(size, 0) for size in range(1, 7)], "prefill[bs=6 tok=21 ctx=[1, 2, 3]...+3]"),
        ([(1, 9)], [], "decode[bs=1 tok=1 d=1]"),
        ([(1, 9)] * 64, [], "decode[bs=64 tok=64 d=64]"),
        ([(1, 9)] * 3, [(10, 0), (20, 4)], "decode[bs=5 tok=33 p=2 d=3]"),
        ([(4, 9)] * 32, [], "decode[bs=32 tok=128 d=32 spec=3]"),
        ([(1, 9), (4, 9)], [(6, 0)], "decode[bs=3 tok=11 p=1 d=2 spec=3]"),
    ],
)
def test_kinds_of_steps(decodes: list[tuple[int, int]], prefills: list[tuple[int, int]], expected: str) -> None:
    assert step_label(batch_of(decodes, prefills)) == expected


def test_the_graph_shows_only_where_it_pads() -> None:
    decodes = batch_of([(1, 9)] * 117, [])
    assert step_label(decodes, 128) == "decode[bs=117/128 tok=117 d=117]"
    assert step_label(decodes, 117) == step_label(decodes) == "decode[bs=117 tok=117 d=117]"


def test_sums_of_attentions_work() -> None:
    assert step_label(batch_of([], [(3, 0), (4, 16)]), with_sums=True) == (
        "prefill[bs=2 tok=7 ctx=[3, 20] sqsq=25 sqsk=89 sk=23]"
    )
    assert step_label(batch_of([(1, 2047)] * 64, []), with_sums=True) == (
        "decode[bs=64 tok=64 d=64 sqsq=64 sqsk=131072 sk=131072]"
    )


def test_sums_beyond_32_bits() -> None:
    label = step_label(batch_of([], [(100_000, 1_000_000)]), with_sums=True)
    assert label.endswith("sqsq=10000000000 sqsk=110000000000 sk=1100000]")


ROWS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 99)), max_size=9)


@given(ROWS, ROWS)
def test_a_label_reads_back_into_the_batch(decodes: list[tuple[int, int]], prefills: list[tuple[int, int]]) -> None:
    if not decodes and not prefills:
        return
    rows = [*decodes, *prefills]
    label = step_label(batch_of(decodes, prefills), with_sums=True)
    kind, inside = label.removesuffix("]").split("[", 1)
    values = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", inside)}
    assert kind == ("decode" if decodes else "prefill")
    assert values["bs"] == len(rows)
    assert values["tok"] == sum(query for query, _ in rows)
    assert values["sqsq"] == sum(query**2 for query, _ in rows)
    assert values["sqsk"] == sum(query * (query + context) for query, context in rows)
    assert values["sk"] == sum(query + context for query, context in rows)
    if decodes:
        assert values["d"] == len(decodes) and values.get("p", 0) == len(prefills)
        assert values.get("spec", 0) == max(query for query, _ in decodes) - 1
