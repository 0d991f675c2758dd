"""Formats by name, and by what a template shows."""

from __future__ import annotations

import pytest
from atom_spec.formats import FORMATS

from atom.entrypoints.openai.chat_encoders import JinjaChatEncoder
from atom.entrypoints.openai.chat_profile import render_probe_prompt
from atom.entrypoints.openai.tool_parser.registry import FORMAT_NAMES, UnknownFormatError, detect_format, get_format
from tests.shared_data import shared_path

# As grammar.md names them: the file's beginning, the format, the variant.
TEMPLATES = [
    ("GLM-4.5", "glm", "45"),
    ("GLM-4.6", "glm", "45"),
    ("GLM-4.7", "glm", "47"),
    ("GLM-5.3", "glm", "47"),
    ("Kimi-K2", "kimi", None),
    ("moonshotai-Kimi-K2", "kimi", None),
    ("Kimi-K3", "kimi_k3", None),
    ("MiniMax-M1", None, None),
    ("MiniMax-M2", "minimax", "m2"),
    ("MiniMax-M3", "minimax", "m3"),
    ("Mistral-Small", "mistral", "v11"),
    ("mistralai-Ministral", "mistral", "v11"),
    ("mistralai-Mistral-Nemo", "mistral", "v7"),
    ("unsloth-mistral-Devstral", "mistral", "v11"),
    ("NousResearch-Hermes", "hermes", None),
    ("Qwen-QwQ", "hermes", None),
    ("Qwen-Qwen2.5", "hermes", None),
    ("Qwen-Qwen3-0.6B", "hermes", None),
    ("Qwen3-Coder", "qwen", None),
    ("Qwen3.5", "qwen", None),
    ("deepseek-ai-DeepSeek-R1", "deepseek_v3", "r1"),
    ("llama-cpp-deepseek-r1", "deepseek_v3", "r1"),
    ("deepseek-ai-DeepSeek-V3.1", "deepseek_v3", "v31"),
    ("deepseek-ai-DeepSeek-V3.2", "dsml", "v32"),
    ("deepseek-ai-DeepSeek-V4", "dsml", "v4"),
    ("meta-llama-Llama-3", "llama3_json", None),
    ("openai-gpt-oss", "harmony", None),
]


@pytest.mark.shared
@pytest.mark.parametrize(("beginning", "name", "variant"), TEMPLATES)
def test_each_real_template_is_recognised(beginning: str, name: str | None, variant: str | None) -> None:
    paths = sorted(shared_path("formats", "chat_templates").glob(f"{beginning}*.jinja"))
    assert paths
    for path in paths:
        tokens = {"bos_token": "<s>", "eos_token": "</s>"}
        encoder = JinjaChatEncoder({"default": path.read_text(encoding="utf-8")}, tokens, path.name)
        found = detect_format(render_probe_prompt(encoder))
        assert (found and (found.name, found.variant)) == (name and (name, variant))


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_recognises_its_own_examples(name: str) -> None:
    """Evidence is what a template shows, and templates show calls: a format's own, or none but what it describes."""
    spec = FORMATS[name]
    shown = "\n".join(example.text for example in spec.examples)
    found = detect_format(shown)
    assert found is None or found.name == name


def test_names_and_aliases() -> None:
    assert set(FORMAT_NAMES) == set(FORMATS)
    assert get_format("qwen3_coder") is FORMATS["qwen"]
    with pytest.raises(UnknownFormatError, match=r"'gpt9'.*dsml, glm, harmony"):
        get_format("gpt9")


def test_nothing_is_recognised_in_a_template_without_tools() -> None:
    assert detect_format("<|im_start|>user\nHello<|im_end|>") is None


def test_the_evidence_is_told() -> None:
    found = detect_format("<function=x><parameter=y>")
    assert found is not None
    assert found.evidence == "the template shows '<function=' and '<parameter='"
