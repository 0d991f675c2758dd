"""What decode graphs need that a CPU can show: their sizes, the padding, and steps made on the device alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from atom.model_engine.batch import ScheduledBatch, SlotAdmission
from atom.model_engine.decode_graphs import DecodeGraphs, capture_sizes
from atom.model_engine.input_batch import InputBatch, SampledRows, is_even
from atom.model_engine.memory_profile import explain_out_of_memory
from atom.model_engine.sampling_state import SamplingState
from atom.model_ops.step import StepInputs
from atom.sampling_params import SamplingParams
from tests.model_engine.graphs_on_cpu import capture

_CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("asked", "limit", "sizes"),
    [
        (None, 1, [1]),
        (None, 5, [1, 2, 4, 5]),
        (None, 40, [1, 2, 4, 8, 16, 32, 40]),
        ((8, 2, 2, 64, 20), 16, [2, 8, 16]),  # the batches that 64 was to hold have a graph
        ((16,), 16, [16]),
        ((512,), 1, [1]),
        ((), 16, []),
    ],
)
def test_capture_sizes(asked: tuple[int, ...] | None, limit: int, sizes: list[int]) -> None:
    assert capture_sizes(asked, limit) == sizes


def test_capture_sizes_of_a_large_server() -> None:
    sizes = capture_sizes(None, 2048)
    assert (sizes[:6], sizes[-2:], len(sizes)) == ([1, 2, 4, 8, 16, 32], [496, 512], 36)


@pytest.fixture
def inputs() -> InputBatch:
    """Slots 0 to 3; 1 and 3 hold sequences."""
    made = InputBatch(4, 8, 4, SamplingState(4, 50, (), _CPU), _CPU)
    sampling = SamplingParams(temperature=0.0)
    admissions = [SlotAdmission(3, [1] * 6, 6, [5, 2], sampling, 0), SlotAdmission(1, [1], 1, [7], sampling, 0)]
    made.apply(batch([], [], admissions))
    made.last_tokens[:] = torch.tensor([10, 11, 12, 13, 14])
    return made


def batch(
    slots: list[int], contexts: list[int], admissions: list[SlotAdmission] | None = None, lens: list[int] | None = None
) -> ScheduledBatch:
    """A batch of decodes."""
    ints = [np.array(x, dtype=np.int32) for x in (slots, lens or [1] * len(slots), contexts)]
    none = np.empty(0, dtype=np.int32)
    return ScheduledBatch(
        0, *ints, np.ones(len(slots), dtype=np.bool_), len(slots), none, none.reshape(0, 3), admissions or []
    )


def test_a_step_made_on_the_device_is_the_one_made_on_the_host(inputs: InputBatch) -> None:
    wanted = inputs.inputs(batch([3, 1], [6, 1]))
    found = inputs.decode_rows(torch.tensor([3, 1]), torch.tensor([6, 1]), is_even=False)
    for name in ("token_ids", "positions", "slot_mapping"):
        assert torch.equal(getattr(found, name), getattr(wanted, name)), name
    assert found.slot_mapping.tolist() == [2 * 4 + 2, 7 * 4 + 1]
    assert torch.equal(found.block_tables[:, :2], wanted.block_tables)
    assert found.is_even == wanted.is_even
    assert (found.num_tokens, found.num_decodes, found.num_decode_tokens) == (2, 2, 2)


@pytest.mark.parametrize(
    ("lens", "even"),
    [
        ([9000], True), ([], True), ([0, 0], True), ([1024] * 64, True), ([100, 302], True), ([100, 303], False),
        ([1024] * 63 + [32768], False), ([64, 300, 600, 900, 1200, 1500, 1900, 2112], False),
    ],
)  # fmt: skip
def test_which_lengths_are_even(lens: list[int], even: bool) -> None:
    """Of 100 and 302 tokens before, and one of the step, the longer is 1.5 times the mean."""
    assert is_even(np.array(lens, dtype=np.int32)) is even


def test_steps_run_in_the_graph_for_their_lengths(inputs: InputBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both graphs of a size have one input and one output; a size of one has one graph."""
    monkeypatch.setattr("atom.model_engine.decode_graphs.capture", capture)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (1 << 30, 8 << 30))
    ran: list[tuple[int, bool]] = []

    def decode(step: StepInputs) -> tuple[torch.Tensor, torch.Tensor]:
        ran.append((step.num_decodes, step.is_even))
        logits = torch.stack((step.positions, step.positions * 0 + step.is_even), 1).float()
        return logits, step.positions + 20

    nothing: SampledRows = None  # type: ignore[assignment]  # not looked at
    graphs = DecodeGraphs([1, 4], decode, inputs, None, has_two=True)
    assert ran == [(4, True), (4, False), (1, True)]
    for slots, contexts, even in (([3, 1], [6, 6], True), ([3, 1], [6, 1], False), ([3], [6], True)):
        del ran[:]
        logits, tokens = graphs.run(batch(slots, contexts), nothing)
        assert ran == [(1 if len(slots) == 1 else 4, even)]
        assert logits.tolist() == [[context, even] for context in contexts]
        assert tokens.tolist() == [context + 20 for context in contexts]
        assert inputs.last_tokens[slots].tolist() == tokens.tolist()
    one = DecodeGraphs([4], decode, inputs, None)
    del ran[:]
    one.run(batch([3, 1], [6, 1]), nothing)
    assert ran == [(4, True)]


def test_padding_has_no_keys_and_writes_nothing(inputs: InputBatch) -> None:
    graphs = object.__new__(DecodeGraphs)
    graphs._inputs = inputs
    rows = graphs._padded(np.array([3]), np.array([6]), 4)
    assert rows.tolist() == [[3, 4, 4, 4], [6, -1, -1, -1]]
    step = inputs.decode_rows(*torch.from_numpy(rows), is_even=True)
    assert step.slot_mapping.tolist() == [10, -1, -1, -1]
    assert step.positions.tolist() == [6, -1, -1, -1]


def test_what_a_graph_can_run() -> None:
    graphs = object.__new__(DecodeGraphs)
    graphs._sizes = [1, 4]
    assert graphs.fits(batch([1, 2, 3, 0], [5] * 4))
    assert [graphs.size(batch([0] * n, [5] * n)) for n in (1, 2, 4)] == [1, 4, 4]
    assert not graphs.fits(batch([1, 2, 3, 0, 4], [5] * 5))
    assert not graphs.fits(batch([], []))
    assert not graphs.fits(batch([1], [5], lens=[2]))
    prefill = batch([1, 2], [5, 0])
    assert not graphs.fits(
        ScheduledBatch(
            0, prefill.slots, prefill.query_lens, prefill.context_lens, prefill.samples, 1, np.ones(1, np.int32),
            prefill.new_blocks,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("Tried to allocate 2 GiB"),
        torch.AcceleratorError("CUDA error: out of memory"),
        RuntimeError("Triton Error [CUDA]: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_out_of_memory_says_what_to_change(error: RuntimeError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 30, 8 << 30))
    with (
        pytest.raises(MemoryError, match=r"while loading \(1\.0 of 8\.0 GiB free\): choose less"),
        explain_out_of_memory("loading", "choose less"),
    ):
        raise error


def test_other_errors_are_as_they_were() -> None:
    with pytest.raises(RuntimeError, match=r"^illegal memory access$"), explain_out_of_memory("loading", "choose less"):
        raise RuntimeError("illegal memory access")
