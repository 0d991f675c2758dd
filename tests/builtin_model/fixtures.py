"""What several tests of the shipped model need: its files, its own weights, and Jinja as servers set it up."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import torch
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from atom.builtin_model import resolve
from tools.builtin_model.evaluate import Case, make_case
from tools.builtin_model.exchanges import Dialogue
from tools.builtin_model.greedy import generate
from tools.builtin_model.model import TinyModel, load_model
from tools.builtin_model.vocabulary import END_IDS, FastEncoder

torch.set_num_threads(1)  # many tests at once on few cores: more threads only wait for each other

FOLDER = resolve("atom-tiny").path


@functools.cache
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


@functools.cache
def encoder() -> FastEncoder:
    return FastEncoder(tokenizer())


@functools.cache
def model() -> TinyModel:
    return load_model(FOLDER)


def answers(cases: list[Case], max_new_tokens: int) -> list[str]:
    """Greedy answers, their end token included."""
    found = generate(model(), [case.prompt for case in cases], END_IDS, max_new_tokens)
    return [tokenizer().decode(ids, skip_special_tokens=False) for ids in found]


def case_of(dialogue: Dialogue) -> Case:
    return make_case(dialogue, encoder())


@functools.cache
def template(format_name: str, trims: bool = True) -> Any:
    """The shipped template in an environment like that of transformers; `trims` sets the block-trimming flags."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=trims, lstrip_blocks=trims)
    environment.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
    environment.globals["raise_exception"] = _refuse
    path: Path = resolve(f"atom-tiny@{format_name}").chat_template
    return environment.from_string(path.read_text(encoding="utf-8"))


def _refuse(message: str) -> None:
    raise ValueError(message)
