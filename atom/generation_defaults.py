"""What a model's own files say about generation: default sampling parameters and the ids that end a turn.

Reads generation_config.json, config.json and the tokenizer's files. Knows no request.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec

from atom.model_folder import read_json_object
from atom.sampling_params import SamplingParams

logger = logging.getLogger(__name__)


class GenerationDefaults(msgspec.Struct, frozen=True):
    """Sampling parameters that hold where a request is silent; None: the model says nothing either."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None

    def given(self) -> dict[str, float | int]:
        """The parameters that are set, by name."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


def read_generation_defaults(choice: str, model_path: Path) -> GenerationDefaults:
    """`choice` is the value of --generation-config: auto, none or a folder. ValueError names the file and the key.

    do_sample is not read: a request's temperature decides whether the answer is sampled.
    """
    if choice == "none":
        return GenerationDefaults()
    folder = model_path if choice == "auto" else Path(choice).expanduser()
    path = folder / "generation_config.json"
    raw = read_json_object(path)
    if raw is None:
        if choice != "auto":
            raise ValueError(f"--generation-config: {path} does not exist; give auto, none or a folder that holds one")
        return GenerationDefaults()
    known = {name: raw[name] for name in GenerationDefaults.__struct_fields__ if raw.get(name) is not None}
    try:
        defaults = msgspec.convert(known, GenerationDefaults)
        SamplingParams(**defaults.given())  # type: ignore[arg-type]  # values of one Any dict
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"{path}: {error}; --generation-config none ignores the file") from None
    if known:
        logger.info("default sampling parameters from %s: %s", path, known)
    return defaults


def read_eos_token_ids(model_path: Path, config: dict[str, Any], vocab_size: int) -> tuple[int, ...]:
    """Every id that ends a turn: of config.json, generation_config.json and the tokenizer together, ascending.

    Ids outside the vocabulary are dropped with a warning.
    """
    generation = read_json_object(model_path / "generation_config.json") or {}
    found = {
        "config.json": _ids(config.get("eos_token_id"), "config.json"),
        "generation_config.json": _ids(generation.get("eos_token_id"), "generation_config.json"),
        "the tokenizer": _tokenizer_eos(model_path),
    }
    ids: set[int] = set()
    for source, source_ids in found.items():
        for token_id in source_ids:
            if 0 <= token_id < vocab_size:
                ids.add(token_id)
            else:
                logger.warning("%s: eos_token_id %d is outside the vocabulary of %d", source, token_id, vocab_size)
    if not ids:
        logger.warning("%s names no token that ends a turn; answers end only at max_tokens", model_path)
    return tuple(sorted(ids))


def _ids(value: Any, source: str) -> list[int]:
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(v) is int for v in values):
        raise ValueError(f"{source}: eos_token_id must be a token id or a list of them, got {value!r}")
    return values


class _AddedToken(msgspec.Struct):
    content: str
    id: int


class _Vocabulary(msgspec.Struct):
    vocab: dict[str, int] | list[Any] = {}


class _TokenizerJson(msgspec.Struct):
    added_tokens: list[_AddedToken] = []
    model: msgspec.Raw = msgspec.Raw(b"{}")


def _tokenizer_eos(model_path: Path) -> list[int]:
    """The id of the tokenizer's own eos_token, as a list of none or one."""
    config = read_json_object(model_path / "tokenizer_config.json") or {}
    special = read_json_object(model_path / "special_tokens_map.json") or {}
    token = _text(config.get("eos_token")) or _text(special.get("eos_token"))
    if token is None:
        return []
    for token_id, entry in (config.get("added_tokens_decoder") or {}).items():
        if _text(entry) == token:
            return [int(token_id)]
    path = model_path / "tokenizer.json"
    if not path.exists():
        return []
    tokenizer = msgspec.json.decode(path.read_bytes(), type=_TokenizerJson)
    for added in tokenizer.added_tokens:
        if added.content == token:
            return [added.id]
    vocab = msgspec.json.decode(tokenizer.model, type=_Vocabulary).vocab
    return [vocab[token]] if isinstance(vocab, dict) and token in vocab else []


def _text(entry: Any) -> str | None:
    """A token is written as a string, or as an object with its string under `content`."""
    if isinstance(entry, dict):
        entry = entry.get("content")
    return entry if isinstance(entry, str) else None
