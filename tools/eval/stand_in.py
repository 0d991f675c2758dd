"""gsm8k's place taken by word problems of our own, so that lm-eval's unchanged task `gsm8k` runs without a download.

Owns: a folder `openai/gsm8k` that the datasets library finds in the working directory before it asks the hub.
Does not know: lm-eval. A score over the stand-in is none of gsm8k's: it shows that the path works, nothing else.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import datasets

_CARD = """---
configs:
- config_name: main
  data_files:
  - split: train
    path: train.jsonl
  - split: test
    path: test.jsonl
---
"""


def write_stand_in(root: Path, data: Path) -> None:
    """`root`/openai/gsm8k with the columns and splits of gsm8k, from data/problems_*.jsonl."""
    folder = root / "openai" / "gsm8k"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(_CARD, encoding="utf-8")
    for split in ("train", "test"):
        shutil.copyfile(data / f"problems_{split}.jsonl", folder / f"{split}.jsonl")


@contextlib.contextmanager
def instead_of_gsm8k(data: Path) -> Iterator[None]:
    """Inside, the working directory is one where `openai/gsm8k` is the stand-in.

    So is the cache of the datasets library: it goes by name, and the stand-in must never be taken for gsm8k later.
    """
    usual = datasets.config.HF_DATASETS_CACHE
    with tempfile.TemporaryDirectory() as name:
        write_stand_in(Path(name), data)
        datasets.config.HF_DATASETS_CACHE = Path(name) / "cache"
        try:
            with contextlib.chdir(name):
                yield
        finally:
            datasets.config.HF_DATASETS_CACHE = usual
