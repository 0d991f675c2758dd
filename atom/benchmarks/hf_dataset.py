"""Rows of a dataset that the `datasets` library reads, and the question and answer in a row.

Owns where such a dataset may be (an id of the hub, a folder, a file) and the usual layouts of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from atom.benchmarks.extras import need

READERS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet", ".txt": "text", ".arrow": "arrow"}
_TURNS = ("conversations", "conversation", "messages")
_QUESTIONS = ("prompt", "question", "instruction", "input", "text")
_ANSWERS = ("response", "completion", "answer", "output", "chosen")
_SHUFFLE_BUFFER = 1000


class DatasetError(ValueError):
    """A dataset that can not be read, or that has no row to use; the message names the file."""


def read_hf_rows(path: str, subset: str | None, split: str | None, seed: int) -> Iterable[Mapping[str, Any]]:
    """The rows of one split, shuffled. `path`: an id of the hub, a folder or a file. Raises DatasetError."""
    datasets = need("datasets", "--dataset-name hf")
    try:
        found = _load(datasets, path, subset)
        if isinstance(found, Mapping):
            found = found[_pick_split(found, split)]
        is_stream = isinstance(found, datasets.IterableDataset)
        rows = found.shuffle(seed=seed, buffer_size=_SHUFFLE_BUFFER) if is_stream else found.shuffle(seed=seed)
        return cast(Iterable[Mapping[str, Any]], rows)
    except DatasetError:
        raise
    except Exception as error:  # the library raises its own, the hub's, pyarrow's and the operating system's errors
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise DatasetError(f"--dataset-path {path}: {type(error).__name__}: {reason}") from error


def _load(datasets: Any, path: str, subset: str | None) -> Any:
    place = Path(path).expanduser()
    if place.is_file():
        reader = READERS.get(place.suffix.lower())
        if reader is None:
            raise DatasetError(f"--dataset-path {path}: the suffix is none of {', '.join(READERS)}")
        return datasets.load_dataset(reader, data_files=str(place))
    if (place / "state.json").is_file() or (place / "dataset_dict.json").is_file():
        return datasets.load_from_disk(str(place))
    if place.is_dir():
        return datasets.load_dataset(str(place), name=subset)
    return datasets.load_dataset(path, name=subset, streaming=True)  # of the hub's, only what is used is fetched


def _pick_split(found: Mapping[str, Any], split: str | None) -> str:
    names = list(found)
    if split is None and len(names) == 1:
        return names[0]
    wanted = split or "train"
    if wanted not in names:
        raise DatasetError(f"--hf-split: there is no split {wanted}; there are {', '.join(names)}")
    return wanted


def conversation_of(row: Any) -> tuple[str, str] | None:
    """A row's first question and the answer to it, None for a row without both.

    The layouts are ShareGPT's (`conversations` of from/value or role/content), `messages`, and two columns.
    """
    if not isinstance(row, Mapping):
        return None
    for key in _TURNS:
        turns = row.get(key)
        if isinstance(turns, Sequence) and not isinstance(turns, str):
            texts = [text for text in map(_turn_text, turns) if text is not None]
            return (texts[0], texts[1]) if len(texts) > 1 else None
    question, answer = _first_text(row, _QUESTIONS), _first_text(row, _ANSWERS)
    return None if question is None else (question, answer or "")


def _turn_text(turn: Any) -> str | None:
    """A turn's text; None for a system turn, which is no question."""
    if not isinstance(turn, Mapping) or turn.get("role") == "system" or turn.get("from") == "system":
        return None
    text = turn.get("value", turn.get("content"))
    return text if isinstance(text, str) else None


def _first_text(row: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((value for key in keys if isinstance(value := row.get(key), str) and value), None)
