"""Which function implements which operation, by backend.

Owns names only: nothing is imported until `select` resolves it. What an operation means is in spec/kernels.yaml.
"""

from __future__ import annotations

_REFERENCE = "atom.model_ops.kernels.reference"
_TRITON = "atom.model_ops.kernels.triton"
_AITER = "atom.model_ops.kernels.aiter"

TABLE: dict[str, dict[str, str]] = {
    "linear_pack": {
        "reference": f"{_REFERENCE}.linear:linear_pack",
        "triton": f"{_TRITON}.linear:linear_pack",
        "aiter": f"{_AITER}.linear:linear_pack",
    },
    "linear": {
        "reference": f"{_REFERENCE}.linear:linear",
        "triton": f"{_TRITON}.linear:linear",
        "aiter": f"{_AITER}.linear:linear",
    },
    "logits": {
        "reference": f"{_REFERENCE}.linear:logits",
        "triton": f"{_TRITON}.linear:logits",
        "aiter": f"{_AITER}.linear:logits",
    },
    "fp8_linear_pack": {
        "reference": f"{_REFERENCE}.fp8_linear:fp8_linear_pack",
        "triton": f"{_TRITON}.fp8_linear:fp8_linear_pack",
        "aiter": f"{_AITER}.fp8_linear:fp8_linear_pack",
    },
    "fp8_linear": {
        "reference": f"{_REFERENCE}.fp8_linear:fp8_linear",
        "triton": f"{_TRITON}.fp8_linear:fp8_linear",
        "aiter": f"{_AITER}.fp8_linear:fp8_linear",
    },
    "fp8_rms_norm": {
        "reference": f"{_REFERENCE}.fp8_linear:fp8_rms_norm",
        "triton": f"{_TRITON}.fp8_fused:fp8_rms_norm",
        "aiter": f"{_AITER}.norm:fp8_rms_norm",
    },
    "fp8_silu_and_mul": {
        "reference": f"{_REFERENCE}.fp8_linear:fp8_silu_and_mul",
        "triton": f"{_TRITON}.fp8_fused:fp8_silu_and_mul",
        "aiter": f"{_AITER}.activation:fp8_silu_and_mul",
    },
    "fp4_linear_pack": {
        "reference": f"{_REFERENCE}.fp4_linear:fp4_linear_pack",
        "aiter": f"{_AITER}.fp4_linear:fp4_linear_pack",
    },
    "fp4_linear": {
        "reference": f"{_REFERENCE}.fp4_linear:fp4_linear",
        "aiter": f"{_AITER}.fp4_linear:fp4_linear",
    },
    "rms_norm": {
        "reference": f"{_REFERENCE}.norm:rms_norm",
        "triton": f"{_TRITON}.norm:rms_norm",
        "aiter": f"{_AITER}.norm:rms_norm",
    },
    "add_rms_norm": {
        "reference": f"{_REFERENCE}.norm:add_rms_norm",
        "triton": f"{_TRITON}.norm:add_rms_norm",
        "aiter": f"{_AITER}.norm:add_rms_norm",
    },
    "silu_and_mul": {
        "reference": f"{_REFERENCE}.activation:silu_and_mul",
        "triton": f"{_TRITON}.activation:silu_and_mul",
        "aiter": f"{_AITER}.activation:silu_and_mul",
    },
    "route_softmax": {
        "reference": f"{_REFERENCE}.routing:route_softmax",
        "aiter": f"{_AITER}.routing:route_softmax",
    },
    "route_grouped": {
        "reference": f"{_REFERENCE}.routing:route_grouped",
        "aiter": f"{_AITER}.routing:route_grouped",
    },
    "experts_pack": {
        "reference": f"{_REFERENCE}.experts:experts_pack",
        "aiter": f"{_AITER}.experts:experts_pack",
    },
    "fp8_experts_pack": {
        "reference": f"{_REFERENCE}.experts:fp8_experts_pack",
        "aiter": f"{_AITER}.experts:fp8_experts_pack",
    },
    "fused_experts": {
        "reference": f"{_REFERENCE}.experts:fused_experts",
        "aiter": f"{_AITER}.experts:fused_experts",
    },
    "kv_cache_shape": {
        "reference": f"{_REFERENCE}.kv_cache:kv_cache_shape",
        "triton": f"{_TRITON}.kv_cache:kv_cache_shape",
        "aiter": f"{_AITER}.layout:kv_cache_shape",
    },
    "attention_plan": {
        "reference": f"{_REFERENCE}.plan:attention_plan",
        "triton": f"{_TRITON}.plan:attention_plan",
        "aiter": f"{_AITER}.plan:attention_plan",
    },
    "qkv_rope_write": {
        "reference": f"{_REFERENCE}.kv_cache:qkv_rope_write",
        "triton": f"{_TRITON}.kv_cache:qkv_rope_write",
        "aiter": f"{_AITER}.kv_cache:qkv_rope_write",
    },
    "attention_decode": {
        "reference": f"{_REFERENCE}.attention:attention_decode",
        "triton": f"{_TRITON}.decode:attention_decode",
        "aiter": f"{_AITER}.decode:attention_decode",
    },
    "attention_prefill": {
        "reference": f"{_REFERENCE}.attention:attention_prefill",
        "triton": f"{_TRITON}.fresh_prefill:attention_prefill",
        "torch_flash": f"{_TRITON}.prefill:attention_prefill",
        "aiter": f"{_AITER}.prefill:attention_prefill",
    },
    "mla_cache_shape": {
        "reference": f"{_REFERENCE}.mla:mla_cache_shape",
        "aiter": f"{_AITER}.mla:mla_cache_shape",
    },
    "mla_plan": {
        "reference": f"{_REFERENCE}.plan:attention_plan",
        "aiter": f"{_AITER}.plan:attention_plan",
    },
    "mla_rope_write": {
        "reference": f"{_REFERENCE}.mla:mla_rope_write",
        "aiter": f"{_AITER}.mla:mla_rope_write",
    },
    "mla_decode": {
        "reference": f"{_REFERENCE}.mla:mla_decode",
        "aiter": f"{_AITER}.mla:mla_decode",
    },
    "philox_uniform": {
        "reference": f"{_REFERENCE}.random:philox_uniform",
        "triton": f"{_TRITON}.random:philox_uniform",
    },
    "mask_logits": {"reference": f"{_REFERENCE}.sampling:mask_logits", "triton": f"{_TRITON}.masks:mask_logits"},
    "greedy_sample": {
        "reference": f"{_REFERENCE}.sampling:greedy_sample",
        "triton": f"{_TRITON}.sampling:greedy_sample",
    },
    "sample": {"reference": f"{_REFERENCE}.sampling:sample", "triton": f"{_TRITON}.drawing:sample"},
    "verify_greedy": {
        "reference": f"{_REFERENCE}.verification:verify_greedy",
        "triton": f"{_TRITON}.verification:verify_greedy",
    },
}
