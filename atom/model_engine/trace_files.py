"""Where traces of torch's profiler go, what they are called, and how one is written.

Knows neither when a trace is recorded nor what is in it.
"""

from __future__ import annotations

import gzip
import re
import shutil
from datetime import datetime
from pathlib import Path

from torch.profiler import profile

from atom.config import ParallelConfig

SUFFIX = ".pt.trace.json.gz"
# A trace is compressed in pieces: one of an hour may be larger than the memory that is left.
_CHUNK = 64 * 2**20


def worker_folder(
    parent: Path | None, parallel: ParallelConfig, tensor_rank: int = 0, data_rank: int = 0
) -> Path | None:
    """The folder of one worker's traces: `rank_{r}`, or `dp{d}_tp{r}` where several engines share `parent`."""
    if parent is None:
        return None
    if parallel.data_parallel_size > 1:
        return parent / f"dp{data_rank}_tp{tensor_rank}"
    return parent / f"rank_{tensor_rank}"


def trace_name(model: str, moment: datetime) -> str:
    """The file's name: the model's base name in plain characters, and local time to the millisecond."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "_", model.rstrip("/").rpartition("/")[2]) or "model"
    return f"{base}_ts_{moment:%Y%m%d_%H%M%S}_{moment.microsecond // 1000:03d}{SUFFIX}"


def write_trace(recorded: profile, file: Path) -> None:
    """Write a stopped profile as a gzip-compressed Chrome trace. `file` appears when it is whole, or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    plain, partial = file.with_suffix(""), file.with_name(file.name + ".part")
    try:
        recorded.export_chrome_trace(str(plain))
        with plain.open("rb") as source, gzip.open(partial, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target, _CHUNK)
        partial.replace(file)
    finally:
        plain.unlink(missing_ok=True)
        partial.unlink(missing_ok=True)
