"""A model folder without weights, for servers with a real engine: a byte tokenizer, a small template, dummy weights."""

from __future__ import annotations

import json
from pathlib import Path

from tests.entrypoints.live import TEMPLATE
from tests.fakes.byte_tokenizer import EOS, SPECIAL, byte_backend

CONTEXT = 2048
_CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 256 + len(SPECIAL),
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "eos_token_id": EOS,
    "dtype": "float32",
}


def make_folder(folder: Path) -> Path:
    """Write the folder; serve it with `--load_dummy xavier`."""
    byte_backend().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": SPECIAL[0]}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "config.json").write_text(json.dumps(_CONFIG))
    return folder
