"""The evaluation's data is the generator's, and the tasks read it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from atom.builtin_model import resolve
from atom.entrypoints.openai.chat_encoders import load_chat_encoder
from tools.eval.cases import DATA, FILES, text

TASKS = Path(DATA).parent / "tasks"
ROOT = DATA.parents[2]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", FILES)
def test_the_committed_file_is_what_the_generator_gives(name: str) -> None:
    assert (DATA / name).read_text(encoding="utf-8") == text(name)


def test_no_other_file_is_there() -> None:
    assert sorted(path.name for path in DATA.iterdir()) == sorted(FILES)


def test_prompts_are_what_the_server_makes_of_the_questions() -> None:
    model = resolve("atom-tiny")
    encoder = load_chat_encoder(model.path, str(model.chat_template), False)
    for row in rows("answers.jsonl"):
        assert encoder.render([{"role": "user", "content": row["question"]}]) == row["prompt"]


def test_every_choice_list_has_one_right_result() -> None:
    for row in rows("choices.jsonl"):
        assert len(set(row["choices"])) == 4
        term = row["choices"][row["right"]].rpartition("=")[2]
        assert sum(map(int, re.findall(r"\d+", row["context"]))) == int(term)


def test_word_problems_end_with_their_result() -> None:
    train, test = rows("problems_train.jsonl"), rows("problems_test.jsonl")
    for row in train + test:
        working, _, result = row["answer"].partition("\n#### ")
        assert working.endswith(f" {result}.")
    assert len(test) > 64  # so that 64 requests at a time are in flight


@pytest.mark.parametrize("path", sorted(TASKS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_task_names_itself_and_fields_that_its_data_has(path: Path) -> None:
    task = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert task["task"] == path.stem
    if "include" in task:
        task = yaml.safe_load((TASKS / task["include"]).read_text(encoding="utf-8")) | task
    data = ROOT / task["dataset_kwargs"]["data_files"]["test"]
    row = json.loads(data.read_text(encoding="utf-8").splitlines()[0])
    for key in ("doc_to_text", "doc_to_target", "doc_to_choice"):
        if key in task:
            assert task[key].strip("{}") in row


def test_lm_eval_loads_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = pytest.importorskip("lm_eval.tasks", reason="lm-eval is in the bench extra")
    monkeypatch.chdir(ROOT)
    loaded = tasks.TaskManager(include_path=str(TASKS)).load(["atom_answers", "atom_answers_chat", "atom_choices"])
    assert {"atom_answers", "atom_answers_chat", "atom_choices"} <= set(loaded["tasks"])


def test_the_stand_in_is_found_in_place_of_gsm8k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="comes with the bench extra")
    from tools.eval.stand_in import instead_of_gsm8k

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    with instead_of_gsm8k(DATA):
        found = datasets.load_dataset("openai/gsm8k", "main")
    assert not list(tmp_path.iterdir())  # it goes into no cache that outlives it
    assert found["test"].to_list() == rows("problems_test.jsonl")
    assert found["train"].num_rows == 40
