"""tokenizer.json for a model folder that has none, made by transformers in a process of its own.

Owns that process: transformers imports torch, and the caller must not. Knows nothing of what a tokenizer is used for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tokenizers

TIMEOUT = 300.0  # seconds; a large sentencepiece vocabulary takes about a minute

# Of these, transformers needs at least one; without any it would make up an empty tokenizer.
SOURCES = (
    "tokenizer.model",
    "spiece.model",
    "vocab.json",
    "vocab.txt",
    "*.bpe.model",
    "*tiktoken*",
    "tokenization_*.py",
)

_CONVERT = """
import sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=sys.argv[2] == "True", local_files_only=True)
backend = getattr(tokenizer, "backend_tokenizer", None)
if backend is None:
    sys.exit(f"{type(tokenizer).__name__} runs in Python only and has no tokenizer.json form")
sys.stdout.buffer.write(b"\\0" + backend.to_str().encode("utf-8"))
"""


class ConversionError(ValueError):
    """The folder holds no tokenizer that transformers can turn into a tokenizer.json."""


def convert_slow_tokenizer(folder: Path, trust_remote_code: bool) -> tokenizers.Tokenizer:
    """The folder's tokenizer in the fast library's form. Raises ConversionError with the reason."""
    if not folder.is_dir():
        raise ConversionError(f"{folder} is not a folder")
    if not any(next(folder.glob(pattern), None) for pattern in SOURCES):
        raise ConversionError(f"{folder} has no tokenizer: neither tokenizer.json nor any of {', '.join(SOURCES)}")
    command = [sys.executable, "-c", _CONVERT, str(folder), str(trust_remote_code)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise ConversionError(f"converting the tokenizer of {folder} took over {TIMEOUT:.0f} s") from error
    # Libraries print to stdout while they load; the file comes behind the zero byte.
    _, mark, text = done.stdout.partition(b"\0")
    if done.returncode != 0 or not mark:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit status {done.returncode}"
        raise ConversionError(f"{folder} has no tokenizer.json, and its tokenizer can not be converted: {reason}")
    return tokenizers.Tokenizer.from_str(text.decode("utf-8"))
