from __future__ import annotations

import subprocess
import sys

import pytest

from atom.builtin_model import FORMATS, NAMES, is_builtin, resolve
from tools.builtin_model.wire import FORMAT_NAMES


def test_the_plain_name_speaks_qwen() -> None:
    assert resolve("atom-tiny").format == "qwen"
    assert resolve("atom-tiny") == resolve("atom-tiny@qwen")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_leads_to_files(name: str) -> None:
    found = resolve(name)
    assert found.chat_template.is_file()
    assert (found.path / "model.safetensors").is_file()


def test_the_formats_are_those_that_the_model_was_trained_on() -> None:
    assert FORMATS == FORMAT_NAMES


def test_an_unknown_format_is_an_error_that_lists_the_formats() -> None:
    assert is_builtin("atom-tiny@nope")
    with pytest.raises(ValueError, match="'nope'; its formats are qwen, hermes, glm, kimi, kimi_k3, minimax, dsml"):
        resolve("atom-tiny@nope")


@pytest.mark.parametrize("name", ["atom-tinyx", "Qwen/Qwen3-0.6B", "", "atom-tiny/qwen"])
def test_other_names_are_not_built_in(name: str) -> None:
    assert not is_builtin(name)
    with pytest.raises(ValueError, match="not a built-in model"):
        resolve(name)


def test_asking_for_the_model_imports_nothing_but_the_standard_library() -> None:
    script = (
        "import sys; import atom.builtin_model as b; b.resolve('atom-tiny');"
        "heavy = {'torch', 'numpy', 'transformers', 'tokenizers', 'jinja2'};"
        "print([name for name in sys.modules if name.split('.')[0] in heavy])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
