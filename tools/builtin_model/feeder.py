"""Worker processes that generate, encode and pack training documents into batches of a fixed size.

Owns: packing, and the hand-over through files in shared memory. Does not know: the model.
A batch is one int32 row: N + 1 tokens (bit 15 set where the token is trained), then M + 2 document starts, padded
with N.
"""

from __future__ import annotations

import itertools
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from tools.builtin_model.documents import training_document
from tools.builtin_model.vocabulary import MAX_POSITIONS, FastEncoder
from tools.builtin_model.words import Words

TRAINED_BIT = 0x8000
ROWS_PER_FILE = 8
MAX_FILES_WAITING = 240

Array = npt.NDArray[np.int32]


def max_documents(batch_tokens: int) -> int:
    """Upper bound M of documents in a batch; a batch that reaches it is padded.

    Flash attention launches blocks for every possible one, so it is not generous.
    """
    return max(batch_tokens // 192, 32)


def encoded_documents(tokenizer_path: Path, seed: str) -> Iterator[Array]:
    """Endless documents of at most MAX_POSITIONS tokens."""
    encoder, words = FastEncoder(Tokenizer.from_file(str(tokenizer_path))), Words(random.Random(seed))
    while True:
        ids, trained = encoder.encode_segments(training_document(words))
        if len(ids) <= MAX_POSITIONS:
            yield np.array(ids, np.int32) | (np.array(trained, np.int32) * TRAINED_BIT)


def packed_rows(documents: Iterator[Array], batch_tokens: int) -> Iterator[Array]:
    """Endless batches; the document that does not fit is cut, the next batch begins with a fresh one."""
    limit = max_documents(batch_tokens)
    while True:
        taken: list[Array] = []
        total = 0
        while total <= batch_tokens and len(taken) < limit:
            document = next(documents)
            taken.append(document)
            total += len(document)
        yield pack(taken, batch_tokens)


def pack(documents: list[Array], batch_tokens: int) -> Array:
    """One row of the documents, cut at the end of the batch. Unused room is an untrained document of zeros."""
    limit = max_documents(batch_tokens)
    tokens = np.zeros(batch_tokens + 1, np.int32)
    stream = np.concatenate(documents)[: batch_tokens + 1]
    tokens[: len(stream)] = stream
    starts = np.cumsum([0, *(len(document) for document in documents)])
    starts = starts[starts < batch_tokens][: limit + 1]
    bounds = np.full(limit + 2, batch_tokens, np.int32)
    bounds[: len(starts)] = starts
    return np.concatenate([tokens, bounds])


def work(worker: str, tokenizer_path: str, folder: str, batch_tokens: int) -> None:
    """Writes files of ROWS_PER_FILE rows until the parent or the folder is gone; renaming makes a file appear whole.

    `worker` names the worker and seeds its documents.
    """
    parent = os.getppid()
    rows = packed_rows(encoded_documents(Path(tokenizer_path), worker), batch_tokens)
    for number in itertools.count():
        stack = np.stack([next(rows) for _ in range(ROWS_PER_FILE)])
        while os.getppid() == parent and os.path.isdir(folder) and len(os.listdir(folder)) > MAX_FILES_WAITING:
            time.sleep(0.2)
        if os.getppid() != parent or not os.path.isdir(folder):
            return
        temporary = os.path.join(folder, f"writing-{worker}-{number}.npy")
        np.save(temporary, stack)
        os.rename(temporary, os.path.join(folder, f"ready-{number:06}-{worker}.npy"))


class Feeder:
    """Batches from `num_workers` processes, each row used once. Unclosed, its processes run until the parent ends."""

    def __init__(self, tokenizer_path: Path, batch_tokens: int, num_workers: int, seed: int = 0) -> None:
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self._folder = tempfile.mkdtemp(prefix="atom-tiny-", dir=base)
        command = [sys.executable, "-m", "tools.builtin_model.feeder"]
        arguments = [str(tokenizer_path), self._folder, str(batch_tokens)]
        # Plain programs: multiprocessing's would import the trainer's main module, and torch with it, 14 times.
        self._workers = [subprocess.Popen([*command, f"{seed}-{i:02}", *arguments]) for i in range(num_workers)]
        self._rows: queue.Queue[Array] = queue.Queue(32)
        self._closed = threading.Event()
        self.num_waits = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._closed.is_set():
            ready = sorted(name for name in os.listdir(self._folder) if name.startswith("ready"))
            if not ready:
                time.sleep(0.02)
            for name in ready:
                if self._closed.is_set():
                    return
                path = os.path.join(self._folder, name)
                stack = np.load(path)
                os.unlink(path)
                for row in stack:
                    while not self._closed.is_set():
                        try:
                            self._rows.put(row, timeout=0.5)
                            break
                        except queue.Full:
                            continue

    def next_row(self) -> Array:
        """The next batch; waits for the workers where they are behind (counted in `num_waits`)."""
        if self._rows.empty():
            self.num_waits += 1
        while True:
            try:
                return self._rows.get(timeout=60)
            except queue.Empty:
                if all(worker.poll() is not None for worker in self._workers):
                    raise RuntimeError("every worker of the feeder has ended") from None

    def close(self) -> None:
        """Ends the workers and removes their files."""
        self._closed.set()
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.wait()
        self._reader.join()
        shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
