"""The name that a step carries in a profiler's trace: what kind of step it was, and how much work.

Pure text from a batch; knows no profiler. The grammar is in docs/profiling.md, and tools parse it: change both or none.
"""

from __future__ import annotations

import numpy as np

from atom.model_engine.batch import Int32Array, ScheduledBatch

# Lengths of so many rows are listed; of more rows only the first few.
_MAX_LISTED = 5
_NUM_FIRST = 3


def step_label(batch: ScheduledBatch, graph_batch_size: int | None = None, with_sums: bool = False) -> str:
    """`prefill[bs=B tok=T ctx=C]`, or `decode[bs=B tok=T d=D]` as soon as one row of the batch decodes.

    graph_batch_size: rows of the graph that the batch was padded to, None without a graph; `bs=B/G` where it is more
    than B. with_sums: add attention's work, `sqsq`, `sqsk` and `sk`.
    """
    size, tokens = f"bs={batch.num_rows}", f"tok={batch.num_tokens}"
    if batch.num_decodes:
        kind = "decode"
        if graph_batch_size is not None and graph_batch_size > batch.num_rows:
            size += f"/{graph_batch_size}"
        parts = [size, tokens, *_decode_parts(batch)]
    else:
        kind = "prefill"
        parts = [size, tokens, f"ctx={_lengths(batch.context_lens + batch.query_lens)}"]
    if with_sums:
        parts += _sums(batch)
    return f"{kind}[{' '.join(parts)}]"


def _decode_parts(batch: ScheduledBatch) -> list[str]:
    """Prefill chunks that run along (if any), decodes, and draft tokens of a decode (if any)."""
    num_prefills = batch.num_rows - batch.num_decodes
    num_drafts = int(batch.query_lens[: batch.num_decodes].max()) - 1
    parts = [f"p={num_prefills}"] if num_prefills else []
    parts.append(f"d={batch.num_decodes}")
    if num_drafts:
        parts.append(f"spec={num_drafts}")
    return parts


def _lengths(lens: Int32Array) -> str:
    """One number, a short list, or the beginning of a long one and how many are left out."""
    listed: list[int] = lens.tolist()
    if len(listed) == 1:
        return str(listed[0])
    if len(listed) <= _MAX_LISTED:
        return str(listed)
    return f"{listed[:_NUM_FIRST]}...+{len(listed) - _NUM_FIRST}"


def _sums(batch: ScheduledBatch) -> list[str]:
    """Sums over the rows, of squares and products that 32 bits would not hold."""
    queries = batch.query_lens.astype(np.int64)
    keys = queries + batch.context_lens
    return [f"sqsq={int(queries @ queries)}", f"sqsk={int(queries @ keys)}", f"sk={int(keys.sum())}"]
