"""How large the cache gets, and the refusal to start with one that is too small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from atom.config import Config
from atom.model_engine import kv_cache
from atom.model_engine.kv_cache import CacheGeometry, CacheSizeError, choose_num_blocks, free_memory, lazy_zeros

CPU = torch.device("cpu")
SIZE = CacheGeometry(block_size=16, block_bytes=1000)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(
        '{"architectures": ["LlamaForCausalLM"], "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,'
        ' "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 160}'
    )
    return Config.resolve(str(folder), max_num_seqs=4)


def test_the_flag_decides(config: Config) -> None:
    assert choose_num_blocks(replace(config, kv_cache_memory=25_999), SIZE, CPU) == 25


def test_never_more_than_all_sequences_can_fill(config: Config) -> None:
    assert choose_num_blocks(replace(config, kv_cache_memory=1 << 30), SIZE, CPU) == 4 * 10
    assert choose_num_blocks(config, SIZE, CPU) == 4 * 10


def test_one_context_must_fit(config: Config) -> None:
    with pytest.raises(CacheSizeError, match=r"--max-model-len 160 .*at most 144 fit.*--kv-cache-memory"):
        choose_num_blocks(replace(config, kv_cache_memory=9_999), SIZE, CPU)


def test_the_default_is_bounded_by_what_is_free(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    many = replace(config, max_num_seqs=10**9)
    monkeypatch.setattr(kv_cache, "free_memory", lambda: 100_000)
    assert choose_num_blocks(many, SIZE, CPU) == 60
    monkeypatch.setattr(kv_cache, "free_memory", lambda: 10_000)
    with pytest.raises(CacheSizeError, match="--kv-cache-memory"):
        choose_num_blocks(many, SIZE, CPU)
    monkeypatch.setattr(kv_cache, "free_memory", lambda: None)
    assert choose_num_blocks(many, SIZE, CPU) == (4 << 30) // 1000
    large = replace(many, max_model_len=16 * 10**7)
    assert choose_num_blocks(large, SIZE, CPU) == 10**7


def test_a_share_of_a_gpu_that_holds_no_context_names_its_flag(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (900_000, 1_000_000))
    gpu = torch.device("cuda")
    assert choose_num_blocks(replace(config, gpu_memory_utilization=0.13), SIZE, gpu) == 30
    for share in (0.109, 0.02):
        with pytest.raises(
            CacheSizeError, match=r"--max-model-len 160 needs .*at most \d+ fit.*--gpu-memory-utilization"
        ):
            choose_num_blocks(replace(config, gpu_memory_utilization=share), SIZE, gpu)


def test_a_cache_larger_than_the_free_memory_is_refused(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    given = replace(config, kv_cache_memory=30_000)
    monkeypatch.setattr(kv_cache, "free_memory", lambda: 29_999)
    with pytest.raises(CacheSizeError, match=r"0\.0 MiB of memory is free.*--kv-cache-memory"):
        choose_num_blocks(given, SIZE, CPU)
    for free in (30_000, None):
        monkeypatch.setattr(kv_cache, "free_memory", lambda free=free: free)
        assert choose_num_blocks(given, SIZE, CPU) == 30
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (20_000, 10**9))
    with pytest.raises(CacheSizeError, match="is free"):
        choose_num_blocks(given, SIZE, torch.device("cuda"))


def test_free_memory_is_plausible() -> None:
    found = free_memory()
    if Path("/proc/meminfo").exists():
        assert found is not None
        assert 0 <= found < 1 << 50


def test_untouched_zeros_take_no_memory() -> None:
    made = lazy_zeros((1 << 20, 1 << 12), torch.bfloat16, CPU)
    assert made[12345, :5].tolist() == [0.0] * 5
    made[12345, 0] = 2.0
    assert made[12345, :2].tolist() == [2.0, 0.0]
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 if Path("/proc/self/statm").exists() else 0
    assert resident < 6 << 30
