# Derived from spec/aiter/*.yaml by spec/codegen; edit that and run `make generate`.
"""The contract with AITER, as data: its callables, our calls, what else we rely on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. default: its source text, None without one."""

    name: str
    default: str | None = None
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class AiterCall:
    """How we call it: the parameters that our positional arguments are meant for, and the keywords."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join((*self.positional, *(f'{name}=' for name in self.keywords)))})"


@dataclass(frozen=True, slots=True)
class AiterCallable:
    """One callable of the wheel. homes: its names in newer versions. caller: our modules that call it, or empty."""

    name: str
    parameters: tuple[Parameter, ...]
    calls: tuple[AiterCall, ...]
    caller: str = ""
    homes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Rows that a table of the wheel must have, each as (column, value) pairs. file_column: names the kernel's file."""

    path: str
    file_column: str
    why: str
    rows: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Text that a source of the wheel must hold, white space aside: a layout or a limit that we rely on."""

    path: str
    text: str
    why: str


PACKAGE = "amd-aiter"
VERSION = "0.1.7.post2.dev18"
WHEEL = "amd_aiter-0.1.7.post2.dev18-py3-none-any.whl"
SHA256 = "fe139d74438217c35e87e3b961166bac8db2d381eadccb371da2e63615f05a31"
# GPUs that the wheel has kernels for, and the torch dtype that fp8 is there.
FP8_DTYPES = {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn"}

CALLABLES: dict[str, AiterCallable] = {
    "aiter.flash_attn_varlen_func": AiterCallable(
        "aiter.flash_attn_varlen_func",
        (
            Parameter("q", None),
            Parameter("k", None),
            Parameter("v", None),
            Parameter("cu_seqlens_q", None),
            Parameter("cu_seqlens_k", None),
            Parameter("max_seqlen_q", None),
            Parameter("max_seqlen_k", None),
            Parameter("min_seqlen_q", "0"),
            Parameter("dropout_p", "0.0"),
            Parameter("softmax_scale", "None"),
            Parameter("logits_soft_cap", "0.0"),
            Parameter("causal", "False"),
            Parameter("window_size", "(-1, -1)"),
            Parameter("bias", "None"),
            Parameter("alibi_slopes", "None"),
            Parameter("deterministic", "False"),
            Parameter("return_lse", "False"),
            Parameter("return_attn_probs", "False"),
            Parameter("how_v3_bf16_cvt", "1"),
            Parameter("block_table", "None"),
            Parameter("out", "None"),
            Parameter("cu_seqlens_q_padded", "None"),
            Parameter("cu_seqlens_k_padded", "None"),
        ),
        (
            AiterCall(
                ("q", "k", "v"),
                (
                    "cu_seqlens_q",
                    "cu_seqlens_k",
                    "max_seqlen_q",
                    "max_seqlen_k",
                    "softmax_scale",
                    "causal",
                    "window_size",
                ),
            ),
        ),
        caller="prefill",
    ),
    "aiter.flash_attn_varlen_fp8_pertensor_func": AiterCallable(
        "aiter.flash_attn_varlen_fp8_pertensor_func",
        (
            Parameter("q", None),
            Parameter("k", None),
            Parameter("v", None),
            Parameter("cu_seqlens_q", None),
            Parameter("cu_seqlens_k", None),
            Parameter("max_seqlen_q", None),
            Parameter("max_seqlen_k", None),
            Parameter("min_seqlen_q", "0"),
            Parameter("logits_soft_cap", "0.0"),
            Parameter("causal", "False"),
            Parameter("window_size", "(-1, -1)"),
            Parameter("softmax_scale", "None"),
        ),
        (
            AiterCall(
                ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k"),
                ("causal", "softmax_scale"),
            ),
        ),
    ),
    "aiter.mha_batch_prefill_func": AiterCallable(
        "aiter.mha_batch_prefill_func",
        (
            Parameter("q", None),
            Parameter("k", None),
            Parameter("v", None),
            Parameter("cu_seqlens_q", None),
            Parameter("kv_indptr", None),
            Parameter("kv_page_indices", None),
            Parameter("max_seqlen_q", None),
            Parameter("max_seqlen_k", None),
            Parameter("dropout_p", "0.0"),
            Parameter("softmax_scale", "None"),
            Parameter("logits_soft_cap", "0.0"),
            Parameter("causal", "False"),
            Parameter("window_size", "(-1, -1)"),
            Parameter("alibi_slopes", "None"),
            Parameter("deterministic", "False"),
            Parameter("return_lse", "False"),
            Parameter("return_attn_probs", "False"),
            Parameter("out", "None"),
        ),
        (
            AiterCall(
                ("q", "k", "v", "cu_seqlens_q", "kv_indptr", "kv_page_indices", "max_seqlen_q", "max_seqlen_k"),
                ("softmax_scale", "causal", "out"),
            ),
        ),
    ),
    "aiter.pa_fwd_asm": AiterCallable(
        "aiter.pa_fwd_asm",
        (
            Parameter("Q", None),
            Parameter("K", None),
            Parameter("V", None),
            Parameter("block_tables", None),
            Parameter("context_lens", None),
            Parameter("block_tables_stride0", None),
            Parameter("max_qlen", "1"),
            Parameter("K_QScale", "None"),
            Parameter("V_QScale", "None"),
            Parameter("out_", "None"),
            Parameter("qo_indptr", "None"),
            Parameter("high_precision", "1"),
            Parameter("kernelName", "None"),
        ),
        (
            AiterCall(
                ("Q", "K", "V", "block_tables", "context_lens", "block_tables_stride0"),
                ("K_QScale", "V_QScale", "out_", "high_precision"),
            ),
        ),
        caller="decode",
    ),
    "aiter.paged_attention_rocm": AiterCallable(
        "aiter.paged_attention_rocm",
        (
            Parameter("out", None),
            Parameter("exp_sums", None),
            Parameter("max_logits", None),
            Parameter("tmp_out", None),
            Parameter("query", None),
            Parameter("key_cache", None),
            Parameter("value_cache", None),
            Parameter("num_kv_heads", None),
            Parameter("scale", None),
            Parameter("block_tables", None),
            Parameter("context_lens", None),
            Parameter("block_size", None),
            Parameter("max_context_len", None),
            Parameter("alibi_slopes", None),
            Parameter("kv_cache_dtype", None),
            Parameter("k_scale", None),
            Parameter("v_scale", None),
            Parameter("fp8_out_scale", "None"),
            Parameter("partition_size", "256"),
            Parameter("mtp", "1"),
            Parameter("q_scale", "None"),
        ),
        (
            AiterCall(
                (
                    "out",
                    "exp_sums",
                    "max_logits",
                    "tmp_out",
                    "query",
                    "key_cache",
                    "value_cache",
                    "num_kv_heads",
                    "scale",
                    "block_tables",
                    "context_lens",
                    "block_size",
                    "max_context_len",
                    "alibi_slopes",
                    "kv_cache_dtype",
                    "k_scale",
                    "v_scale",
                ),
                ("partition_size", "mtp"),
            ),
        ),
    ),
    "aiter.paged_attention_v1": AiterCallable(
        "aiter.paged_attention_v1",
        (
            Parameter("out", None),
            Parameter("workspace_buffer", None),
            Parameter("query", None),
            Parameter("key_cache", None),
            Parameter("value_cache", None),
            Parameter("scale", None),
            Parameter("block_tables", None),
            Parameter("cu_query_lens", None),
            Parameter("context_lens", None),
            Parameter("max_context_len", None),
            Parameter("alibi_slopes", None),
            Parameter("kv_cache_dtype", None),
            Parameter("kv_cache_layout", None),
            Parameter("logits_soft_cap", None),
            Parameter("k_scale", None),
            Parameter("v_scale", None),
            Parameter("fp8_out_scale", "None"),
            Parameter("partition_size", "256"),
            Parameter("mtp", "1"),
            Parameter("sliding_window", "0"),
        ),
        (
            AiterCall(
                (
                    "out",
                    "workspace_buffer",
                    "query",
                    "key_cache",
                    "value_cache",
                    "scale",
                    "block_tables",
                    "cu_query_lens",
                    "context_lens",
                    "max_context_len",
                    "alibi_slopes",
                    "kv_cache_dtype",
                    "kv_cache_layout",
                    "logits_soft_cap",
                    "k_scale",
                    "v_scale",
                ),
                ("sliding_window",),
            ),
        ),
    ),
    "aiter.ops.triton.unified_attention.unified_attention": AiterCallable(
        "aiter.ops.triton.unified_attention.unified_attention",
        (
            Parameter("q", None),
            Parameter("k", None),
            Parameter("v", None),
            Parameter("out", None),
            Parameter("cu_seqlens_q", None),
            Parameter("max_seqlen_q", None),
            Parameter("seqused_k", None),
            Parameter("max_seqlen_k", None),
            Parameter("softmax_scale", None),
            Parameter("causal", None),
            Parameter("window_size", None),
            Parameter("block_table", None),
            Parameter("softcap", None),
            Parameter("q_descale", None),
            Parameter("k_descale", None),
            Parameter("v_descale", None),
            Parameter("alibi_slopes", "None"),
            Parameter("output_scale", "None"),
            Parameter("qq_bias", "None"),
            Parameter("sinks", "None"),
        ),
        (
            AiterCall(
                ("q", "k", "v", "out"),
                (
                    "cu_seqlens_q",
                    "max_seqlen_q",
                    "seqused_k",
                    "max_seqlen_k",
                    "softmax_scale",
                    "causal",
                    "window_size",
                    "block_table",
                    "softcap",
                    "q_descale",
                    "k_descale",
                    "v_descale",
                    "sinks",
                ),
            ),
        ),
        caller="flash",
        homes=("aiter.ops.triton.attention.unified_attention.unified_attention",),
    ),
    "aiter.ops.triton.pa_decode.paged_attention_decode": AiterCallable(
        "aiter.ops.triton.pa_decode.paged_attention_decode",
        (
            Parameter("output", None),
            Parameter("query", None),
            Parameter("key_cache", None),
            Parameter("value_cache", None),
            Parameter("seq_lens", None),
            Parameter("block_tables", None),
            Parameter("attn_scale", None),
            Parameter("max_seq_len", None),
            Parameter("compute_type", None),
            Parameter("k_scale", None),
            Parameter("v_scale", None),
            Parameter("num_seq_partitions", "0"),
            Parameter("alibi_slopes", "None"),
        ),
        (
            AiterCall(
                (
                    "output",
                    "query",
                    "key_cache",
                    "value_cache",
                    "seq_lens",
                    "block_tables",
                    "attn_scale",
                    "max_seq_len",
                    "compute_type",
                    "k_scale",
                    "v_scale",
                )
            ),
        ),
        homes=("aiter.ops.triton.attention.pa_decode.paged_attention_decode",),
    ),
    "aiter.reshape_and_cache": AiterCallable(
        "aiter.reshape_and_cache",
        (
            Parameter("key", None),
            Parameter("value", None),
            Parameter("key_cache", None),
            Parameter("value_cache", None),
            Parameter("slot_mapping", None),
            Parameter("kv_cache_dtype", None),
            Parameter("k_scale", "None"),
            Parameter("v_scale", "None"),
            Parameter("asm_layout", "False"),
        ),
        (AiterCall(("key", "value", "key_cache", "value_cache", "slot_mapping"), ("kv_cache_dtype", "asm_layout")),),
        caller="kv_cache",
    ),
    "aiter.reshape_and_cache_flash": AiterCallable(
        "aiter.reshape_and_cache_flash",
        (
            Parameter("key", None),
            Parameter("value", None),
            Parameter("key_cache", None),
            Parameter("value_cache", None),
            Parameter("slot_mapping", None),
            Parameter("kv_cache_dtype", None),
            Parameter("k_scale", None),
            Parameter("v_scale", None),
        ),
        (
            AiterCall(
                ("key", "value", "key_cache", "value_cache", "slot_mapping", "kv_cache_dtype", "k_scale", "v_scale")
            ),
        ),
        caller="kv_cache",
    ),
    "aiter.reshape_and_cache_with_pertoken_quant": AiterCallable(
        "aiter.reshape_and_cache_with_pertoken_quant",
        (
            Parameter("key", None),
            Parameter("value", None),
            Parameter("key_cache", None),
            Parameter("value_cache", None),
            Parameter("k_dequant_scales", None),
            Parameter("v_dequant_scales", None),
            Parameter("slot_mapping", None),
            Parameter("asm_layout", None),
        ),
        (
            AiterCall(
                ("key", "value", "key_cache", "value_cache", "k_dequant_scales", "v_dequant_scales", "slot_mapping"),
                ("asm_layout",),
            ),
        ),
    ),
    "aiter.concat_and_cache_mla": AiterCallable(
        "aiter.concat_and_cache_mla",
        (
            Parameter("kv_c", None),
            Parameter("k_pe", None),
            Parameter("kv_cache", None),
            Parameter("slot_mapping", None),
            Parameter("kv_cache_dtype", None),
            Parameter("scale", None),
        ),
        (AiterCall(("kv_c", "k_pe", "kv_cache", "slot_mapping", "kv_cache_dtype", "scale")),),
        caller="mla",
    ),
    "aiter.swap_blocks": AiterCallable(
        "aiter.swap_blocks",
        (
            Parameter("src", None),
            Parameter("dst", None),
            Parameter("block_mapping", None),
        ),
        (AiterCall(("src", "dst", "block_mapping")),),
    ),
    "aiter.ops.triton.fused_kv_cache.fused_qk_rope_reshape_and_cache": AiterCallable(
        "aiter.ops.triton.fused_kv_cache.fused_qk_rope_reshape_and_cache",
        (
            Parameter("q", None),
            Parameter("k", None),
            Parameter("v", None),
            Parameter("key_cache", None),
            Parameter("value_cache", None),
            Parameter("slot_mapping", None),
            Parameter("pos", None),
            Parameter("cos", None),
            Parameter("sin", None),
            Parameter("k_scale", None),
            Parameter("v_scale", None),
            Parameter("is_neox", None),
            Parameter("flash_layout", None),
            Parameter("apply_scale", "True"),
            Parameter("offs", "None"),
            Parameter("q_out", "None"),
            Parameter("k_out", "None"),
            Parameter("output_zeros", "True"),
            Parameter("zeros_out", "None"),
        ),
        (
            AiterCall(
                ("q", "k", "v", "key_cache", "value_cache", "slot_mapping", "pos", "cos", "sin", "k_scale", "v_scale"),
                ("is_neox", "flash_layout", "apply_scale", "q_out", "k_out"),
            ),
        ),
        homes=("aiter.ops.triton.fusions.fused_kv_cache.fused_qk_rope_reshape_and_cache",),
    ),
    "aiter.init_dist_env": AiterCallable(
        "aiter.init_dist_env",
        (
            Parameter("tensor_model_parallel_size", None),
            Parameter("rankID", None),
            Parameter("backend", "'cpu:gloo,cuda:nccl'"),
            Parameter("distributed_init_method", "'env://'"),
            Parameter("local_rank", "-1"),
            Parameter("data_parallel_size", "1"),
            Parameter("data_parallel_rank", "0"),
        ),
        (AiterCall(("tensor_model_parallel_size", "rankID"), ("backend", "distributed_init_method")),),
    ),
    "aiter.destroy_dist_env": AiterCallable("aiter.destroy_dist_env", (), (AiterCall(()),)),
    "aiter.dist.communication_op.tensor_model_parallel_all_reduce": AiterCallable(
        "aiter.dist.communication_op.tensor_model_parallel_all_reduce",
        (
            Parameter("input_", None),
            Parameter("open_fp8_quant", "False"),
        ),
        (AiterCall(("input_",)),),
    ),
    "aiter.dist.communication_op.tensor_model_parallel_all_gather": AiterCallable(
        "aiter.dist.communication_op.tensor_model_parallel_all_gather",
        (
            Parameter("input_", None),
            Parameter("use_custom", "False"),
            Parameter("dim", "-1"),
        ),
        (AiterCall(("input_",), ("dim",)),),
    ),
    "aiter.dist.parallel_state.init_distributed_environment": AiterCallable(
        "aiter.dist.parallel_state.init_distributed_environment",
        (
            Parameter("world_size", "-1"),
            Parameter("rank", "-1"),
            Parameter("distributed_init_method", "'env://'"),
            Parameter("local_rank", "-1"),
            Parameter("backend", "'nccl'"),
            Parameter("data_parallel_size", "1"),
            Parameter("data_parallel_rank", "0"),
        ),
        (AiterCall((), ("world_size", "rank", "distributed_init_method", "local_rank", "backend")),),
    ),
    "aiter.dist.parallel_state.ensure_model_parallel_initialized": AiterCallable(
        "aiter.dist.parallel_state.ensure_model_parallel_initialized",
        (
            Parameter("tensor_model_parallel_size", None),
            Parameter("pipeline_model_parallel_size", None),
            Parameter("backend", "None"),
            Parameter("data_parallel_size", "1"),
        ),
        (AiterCall(("tensor_model_parallel_size", "pipeline_model_parallel_size")),),
    ),
    "aiter.dist.parallel_state.set_custom_all_reduce": AiterCallable(
        "aiter.dist.parallel_state.set_custom_all_reduce", (Parameter("enable", None),), (AiterCall(("enable",)),)
    ),
    "aiter.dist.parallel_state.get_tp_group": AiterCallable(
        "aiter.dist.parallel_state.get_tp_group", (), (AiterCall(()),)
    ),
    "aiter.dist.parallel_state.graph_capture": AiterCallable(
        "aiter.dist.parallel_state.graph_capture", (), (AiterCall(()),)
    ),
    "aiter.dist.parallel_state.GroupCoordinator.all_reduce": AiterCallable(
        "aiter.dist.parallel_state.GroupCoordinator.all_reduce",
        (
            Parameter("input_", None),
            Parameter("ca_fp8_quant", "False"),
        ),
        (AiterCall(("input_",)),),
    ),
    "aiter.topk_softmax": AiterCallable(
        "aiter.topk_softmax",
        (
            Parameter("topk_weights", None),
            Parameter("topk_indices", None),
            Parameter("token_expert_indices", None),
            Parameter("gating_output", None),
            Parameter("need_renorm", None),
        ),
        (AiterCall(("topk_weights", "topk_indices", "token_expert_indices", "gating_output", "need_renorm")),),
        caller="routing",
    ),
    "aiter.topk_sigmoid": AiterCallable(
        "aiter.topk_sigmoid",
        (
            Parameter("topk_weights", None),
            Parameter("topk_indices", None),
            Parameter("gating_output", None),
        ),
        (AiterCall(("topk_weights", "topk_indices", "gating_output")),),
    ),
    "aiter.grouped_topk": AiterCallable(
        "aiter.grouped_topk",
        (
            Parameter("gating_output", None),
            Parameter("topk_weights", None),
            Parameter("topk_ids", None),
            Parameter("num_expert_group", None),
            Parameter("topk_group", None),
            Parameter("need_renorm", None),
            Parameter("is_softmax", "True"),
            Parameter("routed_scaling_factor", "1.0"),
        ),
        (
            AiterCall(
                ("gating_output", "topk_weights", "topk_ids", "num_expert_group", "topk_group", "need_renorm"),
                ("is_softmax", "routed_scaling_factor"),
            ),
        ),
        caller="routing",
    ),
    "aiter.biased_grouped_topk": AiterCallable(
        "aiter.biased_grouped_topk",
        (
            Parameter("gating_output", None),
            Parameter("correction_bias", None),
            Parameter("topk_weights", None),
            Parameter("topk_ids", None),
            Parameter("num_expert_group", None),
            Parameter("topk_group", None),
            Parameter("need_renorm", None),
            Parameter("routed_scaling_factor", "1.0"),
        ),
        (
            AiterCall(
                (
                    "gating_output",
                    "correction_bias",
                    "topk_weights",
                    "topk_ids",
                    "num_expert_group",
                    "topk_group",
                    "need_renorm",
                    "routed_scaling_factor",
                )
            ),
        ),
        caller="routing",
    ),
    "aiter.fused_moe.moe_sorting": AiterCallable(
        "aiter.fused_moe.moe_sorting",
        (
            Parameter("topk_ids", None),
            Parameter("topk_weights", None),
            Parameter("num_experts", None),
            Parameter("model_dim", None),
            Parameter("moebuf_dtype", None),
            Parameter("block_size", "BLOCK_SIZE_M"),
            Parameter("expert_mask", "None"),
            Parameter("num_local_tokens", "None"),
            Parameter("dispatch_policy", "0"),
        ),
        (
            AiterCall(
                ("topk_ids", "topk_weights", "num_experts", "model_dim", "moebuf_dtype"), ("block_size", "expert_mask")
            ),
        ),
    ),
    "aiter.fused_moe.fused_moe": AiterCallable(
        "aiter.fused_moe.fused_moe",
        (
            Parameter("hidden_states", None),
            Parameter("w1", None),
            Parameter("w2", None),
            Parameter("topk_weight", None),
            Parameter("topk_ids", None),
            Parameter("expert_mask", "None"),
            Parameter("activation", "ActivationType.Silu"),
            Parameter("quant_type", "QuantType.No"),
            Parameter("doweight_stage1", "False"),
            Parameter("w1_scale", "None"),
            Parameter("w2_scale", "None"),
            Parameter("a1_scale", "None"),
            Parameter("a2_scale", "None"),
            Parameter("block_size_M", "None"),
            Parameter("num_local_tokens", "None"),
            Parameter("moe_sorting_dispatch_policy", "0"),
            Parameter("dtype", "None"),
            Parameter("hidden_pad", "0"),
            Parameter("intermediate_pad", "0"),
            Parameter("bias1", "None"),
            Parameter("bias2", "None"),
        ),
        (
            AiterCall(("hidden_states", "w1", "w2", "topk_weight", "topk_ids")),
            AiterCall(("hidden_states", "w1", "w2", "topk_weight", "topk_ids"), ("quant_type", "w1_scale", "w2_scale")),
        ),
        caller="experts",
    ),
    "aiter.moe_sum": AiterCallable(
        "aiter.moe_sum",
        (
            Parameter("input", None),
            Parameter("output", None),
        ),
        (AiterCall(("input", "output")),),
    ),
    "aiter.rms_norm": AiterCallable(
        "aiter.rms_norm",
        (
            Parameter("input", None),
            Parameter("weight", None),
            Parameter("epsilon", None),
            Parameter("use_model_sensitive_rmsnorm", "0"),
        ),
        (AiterCall(("input", "weight", "epsilon")),),
        caller="norm, kv_cache, mla",
    ),
    "aiter.rmsnorm2d_fwd_with_add": AiterCallable(
        "aiter.rmsnorm2d_fwd_with_add",
        (
            Parameter("out", None),
            Parameter("input", None),
            Parameter("residual_in", None),
            Parameter("residual_out", None),
            Parameter("weight", None),
            Parameter("epsilon", None),
            Parameter("use_model_sensitive_rmsnorm", "0"),
        ),
        (AiterCall(("out", "input", "residual_in", "residual_out", "weight", "epsilon")),),
        caller="norm",
    ),
    "aiter.rmsnorm2d_fwd_with_dynamicquant": AiterCallable(
        "aiter.rmsnorm2d_fwd_with_dynamicquant",
        (
            Parameter("out", None),
            Parameter("input", None),
            Parameter("yscale", None),
            Parameter("weight", None),
            Parameter("epsilon", None),
            Parameter("use_model_sensitive_rmsnorm", "0"),
        ),
        (AiterCall(("out", "input", "yscale", "weight", "epsilon")),),
    ),
    "aiter.rmsnorm2d_fwd_with_add_dynamicquant": AiterCallable(
        "aiter.rmsnorm2d_fwd_with_add_dynamicquant",
        (
            Parameter("out", None),
            Parameter("input", None),
            Parameter("residual_in", None),
            Parameter("residual_out", None),
            Parameter("yscale", None),
            Parameter("weight", None),
            Parameter("epsilon", None),
            Parameter("use_model_sensitive_rmsnorm", "0"),
        ),
        (AiterCall(("out", "input", "residual_in", "residual_out", "yscale", "weight", "epsilon")),),
    ),
    "aiter.silu_and_mul": AiterCallable(
        "aiter.silu_and_mul",
        (
            Parameter("out", None),
            Parameter("input", None),
        ),
        (AiterCall(("out", "input")),),
        caller="activation",
    ),
    "aiter.scaled_silu_and_mul": AiterCallable(
        "aiter.scaled_silu_and_mul",
        (
            Parameter("out", None),
            Parameter("input", None),
            Parameter("scale", None),
        ),
        (AiterCall(("out", "input", "scale")),),
    ),
    "aiter.gelu_and_mul": AiterCallable(
        "aiter.gelu_and_mul",
        (
            Parameter("out", None),
            Parameter("input", None),
        ),
        (AiterCall(("out", "input")),),
    ),
    "aiter.gelu_tanh_and_mul": AiterCallable(
        "aiter.gelu_tanh_and_mul",
        (
            Parameter("out", None),
            Parameter("input", None),
        ),
        (AiterCall(("out", "input")),),
    ),
    "aiter.rope_cached_positions_2c_fwd_inplace": AiterCallable(
        "aiter.rope_cached_positions_2c_fwd_inplace",
        (
            Parameter("input_x", None),
            Parameter("input_y", None),
            Parameter("cos", None),
            Parameter("sin", None),
            Parameter("positions", None),
            Parameter("rotate_style", None),
            Parameter("reuse_freqs_front_part", None),
            Parameter("nope_first", None),
        ),
        (
            AiterCall(
                ("input_x", "input_y", "cos", "sin", "positions", "rotate_style"),
                ("reuse_freqs_front_part", "nope_first"),
            ),
        ),
        caller="kv_cache, mla",
    ),
    "aiter.rope_cached_positions_fwd_inplace": AiterCallable(
        "aiter.rope_cached_positions_fwd_inplace",
        (
            Parameter("input", None),
            Parameter("cos", None),
            Parameter("sin", None),
            Parameter("positions", None),
            Parameter("rotate_style", None),
            Parameter("reuse_freqs_front_part", None),
            Parameter("nope_first", None),
        ),
        (AiterCall(("input", "cos", "sin", "positions", "rotate_style"), ("reuse_freqs_front_part", "nope_first")),),
    ),
    "aiter.tuned_gemm.tgemm.mm": AiterCallable(
        "aiter.tuned_gemm.tgemm.mm",
        (
            Parameter("inp", None),
            Parameter("weights", None),
            Parameter("bias", "None"),
            Parameter("otype", "None"),
            Parameter("scale_a", "None"),
            Parameter("scale_b", "None"),
            Parameter("scale_c", "None"),
        ),
        (AiterCall(("inp", "weights"), ("bias",)),),
        caller="linear",
    ),
    "aiter.jit.utils.chip_info.get_gfx": AiterCallable("aiter.jit.utils.chip_info.get_gfx", (), (AiterCall(()),)),
    "aiter.jit.utils.chip_info.get_cu_num": AiterCallable("aiter.jit.utils.chip_info.get_cu_num", (), (AiterCall(()),)),
    "aiter.mla.mla_decode_fwd": AiterCallable(
        "aiter.mla.mla_decode_fwd",
        (
            Parameter("q", None),
            Parameter("kv_buffer", None),
            Parameter("o", None),
            Parameter("qo_indptr", None),
            Parameter("kv_indptr", None),
            Parameter("kv_indices", None),
            Parameter("kv_last_page_lens", None),
            Parameter("max_seqlen_q", None),
            Parameter("sm_scale", "None"),
            Parameter("logit_cap", "0.0"),
            Parameter("num_kv_splits", "None"),
            Parameter("num_kv_splits_indptr", "None"),
            Parameter("work_meta_data", "None"),
            Parameter("work_indptr", "None"),
            Parameter("work_info_set", "None"),
            Parameter("reduce_indptr", "None"),
            Parameter("reduce_final_map", "None"),
            Parameter("reduce_partial_map", "None"),
            Parameter("q_scale", "None"),
            Parameter("kv_scale", "None"),
        ),
        (
            AiterCall(
                ("q", "kv_buffer", "o", "qo_indptr", "kv_indptr", "kv_indices", "kv_last_page_lens", "max_seqlen_q"),
                ("sm_scale", "logit_cap"),
            ),
            AiterCall(
                ("q", "kv_buffer", "o", "qo_indptr", "kv_indptr", "kv_indices", "kv_last_page_lens", "max_seqlen_q"),
                (
                    "sm_scale",
                    "work_meta_data",
                    "work_indptr",
                    "work_info_set",
                    "reduce_indptr",
                    "reduce_final_map",
                    "reduce_partial_map",
                    "q_scale",
                    "kv_scale",
                ),
            ),
        ),
        caller="mla",
    ),
    "aiter.mla.mla_prefill_fwd": AiterCallable(
        "aiter.mla.mla_prefill_fwd",
        (
            Parameter("q", None),
            Parameter("kv_buffer", None),
            Parameter("o", None),
            Parameter("qo_indptr", None),
            Parameter("kv_indptr", None),
            Parameter("kv_indices", None),
            Parameter("kv_last_page_lens", None),
            Parameter("max_seqlen_q", None),
            Parameter("sm_scale", "None"),
            Parameter("logit_cap", "0.0"),
            Parameter("num_kv_splits", "None"),
        ),
        (
            AiterCall(
                ("q", "kv_buffer", "o", "qo_indptr", "kv_indptr", "kv_indices", "kv_last_page_lens", "max_seqlen_q"),
                ("sm_scale",),
            ),
        ),
    ),
    "aiter.get_mla_metadata_info_v1": AiterCallable(
        "aiter.get_mla_metadata_info_v1",
        (
            Parameter("batch_size", None),
            Parameter("max_seqlen_qo", None),
            Parameter("num_head_qo", None),
            Parameter("q_dtype", None),
            Parameter("kv_dtype", None),
            Parameter("is_sparse", None),
            Parameter("fast_mode", "True"),
        ),
        (
            AiterCall(
                ("batch_size", "max_seqlen_qo", "num_head_qo", "q_dtype", "kv_dtype", "is_sparse"), ("fast_mode",)
            ),
        ),
    ),
    "aiter.get_mla_metadata_v1": AiterCallable(
        "aiter.get_mla_metadata_v1",
        (
            Parameter("seqlens_qo_indptr", None),
            Parameter("seqlens_kv_indptr", None),
            Parameter("num_heads_per_head_k", None),
            Parameter("num_heads_k", None),
            Parameter("is_causal", None),
            Parameter("work_metadata_ptrs", None),
            Parameter("work_indptr", None),
            Parameter("work_info", None),
            Parameter("reduce_indptr", None),
            Parameter("reduce_final_map", None),
            Parameter("reduce_partial_map", None),
            Parameter("kv_granularity", "16"),
            Parameter("max_seqlen_qo", "-1"),
            Parameter("uni_seqlen_qo", "-1"),
            Parameter("fast_mode", "True"),
            Parameter("topk", "-1"),
            Parameter("max_split_per_batch", "-1"),
        ),
        (
            AiterCall(
                (
                    "seqlens_qo_indptr",
                    "seqlens_kv_indptr",
                    "num_heads_per_head_k",
                    "num_heads_k",
                    "is_causal",
                    "work_metadata_ptrs",
                    "work_indptr",
                    "work_info",
                    "reduce_indptr",
                    "reduce_final_map",
                    "reduce_partial_map",
                ),
                ("kv_granularity", "max_seqlen_qo", "uni_seqlen_qo", "fast_mode"),
            ),
        ),
    ),
    "aiter.gemm_a8w8": AiterCallable(
        "aiter.gemm_a8w8",
        (
            Parameter("XQ", None),
            Parameter("WQ", None),
            Parameter("x_scale", None),
            Parameter("w_scale", None),
            Parameter("bias", "None"),
            Parameter("dtype", "dtypes.bf16"),
            Parameter("splitK", "None"),
        ),
        (AiterCall(("XQ", "WQ", "x_scale", "w_scale"), ("bias", "dtype")),),
        caller="fp8_linear",
    ),
    "aiter.gemm_a8w8_bpreshuffle": AiterCallable(
        "aiter.gemm_a8w8_bpreshuffle",
        (
            Parameter("XQ", None),
            Parameter("WQ", None),
            Parameter("x_scale", None),
            Parameter("w_scale", None),
            Parameter("bias", "None"),
            Parameter("dtype", "dtypes.bf16"),
            Parameter("check", "False"),
        ),
        (AiterCall(("XQ", "WQ", "x_scale", "w_scale"), ("dtype",)),),
    ),
    "aiter.gemm_a8w8_blockscale": AiterCallable(
        "aiter.gemm_a8w8_blockscale",
        (
            Parameter("XQ", None),
            Parameter("WQ", None),
            Parameter("x_scale", None),
            Parameter("w_scale", None),
            Parameter("dtype", "dtypes.bf16"),
            Parameter("isBpreshuffled", "False"),
        ),
        (AiterCall(("XQ", "WQ", "x_scale", "w_scale"), ("dtype",)),),
        caller="fp8_linear",
    ),
    "aiter.gemm_a8w8_blockscale_bpreshuffle": AiterCallable(
        "aiter.gemm_a8w8_blockscale_bpreshuffle",
        (
            Parameter("XQ", None),
            Parameter("WQ", None),
            Parameter("x_scale", None),
            Parameter("w_scale", None),
            Parameter("dtype", "dtypes.bf16"),
        ),
        (AiterCall(("XQ", "WQ", "x_scale", "w_scale"), ("dtype",)),),
    ),
    "aiter.ops.triton.gemm_a8w8.gemm_a8w8": AiterCallable(
        "aiter.ops.triton.gemm_a8w8.gemm_a8w8",
        (
            Parameter("x", None),
            Parameter("w", None),
            Parameter("x_scale", None),
            Parameter("w_scale", None),
            Parameter("bias", "None"),
            Parameter("dtype", "torch.bfloat16"),
            Parameter("y", "None"),
            Parameter("config", "None"),
        ),
        (AiterCall(("x", "w", "x_scale", "w_scale"), ("bias", "dtype")),),
        homes=("aiter.ops.triton.gemm.basic.gemm_a8w8.gemm_a8w8",),
    ),
    "aiter.ops.triton.gemm_a8w8_blockscale.gemm_a8w8_blockscale": AiterCallable(
        "aiter.ops.triton.gemm_a8w8_blockscale.gemm_a8w8_blockscale",
        (
            Parameter("x", None),
            Parameter("w", None),
            Parameter("x_scale", None),
            Parameter("w_scale", None),
            Parameter("dtype", "torch.bfloat16"),
            Parameter("y", "None"),
            Parameter("config", "None"),
            Parameter("skip_reduce", "False"),
        ),
        (AiterCall(("x", "w", "x_scale", "w_scale"), ("dtype",)),),
        homes=("aiter.ops.triton.gemm.basic.gemm_a8w8_blockscale.gemm_a8w8_blockscale",),
    ),
    "aiter.gemm_a4w4": AiterCallable(
        "aiter.gemm_a4w4",
        (
            Parameter("A", None),
            Parameter("B", None),
            Parameter("A_scale", None),
            Parameter("B_scale", None),
            Parameter("out", None),
            Parameter("bias", "None"),
            Parameter("alpha", "1.0"),
            Parameter("beta", "0.0"),
            Parameter("bpreshuffle", "True"),
        ),
        (AiterCall(("A", "B", "A_scale", "B_scale", "out"), ("bpreshuffle",)),),
        caller="fp4_linear",
    ),
    "aiter.per_1x32_f4_quant_hip": AiterCallable(
        "aiter.per_1x32_f4_quant_hip",
        (
            Parameter("x", None),
            Parameter("scale", "None"),
            Parameter("quant_dtype", "dtypes.fp4x2"),
            Parameter("shuffle", "False"),
            Parameter("num_rows", "None"),
            Parameter("num_rows_factor", "1"),
        ),
        (AiterCall(("x",), ("quant_dtype", "shuffle")),),
        caller="fp4_linear",
    ),
    "aiter.utility.fp4_utils.e8m0_shuffle": AiterCallable(
        "aiter.utility.fp4_utils.e8m0_shuffle",
        (Parameter("scale", None),),
        (AiterCall(("scale",)),),
        caller="fp4_linear",
    ),
    "aiter.get_hip_quant": AiterCallable("aiter.get_hip_quant", (Parameter("qType", None),), (AiterCall(("qType",)),)),
    "aiter.per_tensor_quant_hip": AiterCallable(
        "aiter.per_tensor_quant_hip",
        (
            Parameter("x", None),
            Parameter("scale", "None"),
            Parameter("quant_dtype", "dtypes.i8"),
            Parameter("num_rows", "None"),
            Parameter("num_rows_factor", "1"),
        ),
        (AiterCall(("x",), ("scale", "quant_dtype")),),
    ),
    "aiter.per_token_quant_hip": AiterCallable(
        "aiter.per_token_quant_hip",
        (
            Parameter("x", None),
            Parameter("scale", "None"),
            Parameter("quant_dtype", "dtypes.i8"),
            Parameter("num_rows", "None"),
            Parameter("num_rows_factor", "1"),
        ),
        (AiterCall(("x",), ("quant_dtype",)),),
        caller="fp8_linear",
    ),
    "aiter.per_group_quant_hip": AiterCallable(
        "aiter.per_group_quant_hip",
        (
            Parameter("x", None),
            Parameter("scale", "None"),
            Parameter("quant_dtype", "dtypes.i8"),
            Parameter("group_size", "128"),
            Parameter("transpose_scale", "False"),
            Parameter("num_rows", "None"),
            Parameter("num_rows_factor", "1"),
        ),
        (AiterCall(("x",), ("quant_dtype", "group_size", "transpose_scale")),),
        caller="fp8_linear",
    ),
    "aiter.static_per_tensor_quant": AiterCallable(
        "aiter.static_per_tensor_quant",
        (
            Parameter("out", None),
            Parameter("input", None),
            Parameter("scale", None),
        ),
        (AiterCall(("out", "input", "scale")),),
    ),
    "aiter.dynamic_per_tensor_quant": AiterCallable(
        "aiter.dynamic_per_tensor_quant",
        (
            Parameter("out", None),
            Parameter("input", None),
            Parameter("scale", None),
        ),
        (AiterCall(("out", "input", "scale")),),
    ),
    "aiter.dynamic_per_token_scaled_quant": AiterCallable(
        "aiter.dynamic_per_token_scaled_quant",
        (
            Parameter("out", None),
            Parameter("input", None),
            Parameter("scales", None),
            Parameter("scale_ub", "None"),
            Parameter("shuffle_scale", "False"),
            Parameter("num_rows", "None"),
            Parameter("num_rows_factor", "1"),
        ),
        (AiterCall(("out", "input", "scales")),),
    ),
    "aiter.ops.shuffle.shuffle_weight": AiterCallable(
        "aiter.ops.shuffle.shuffle_weight",
        (
            Parameter("x", None),
            Parameter("layout", "(16, 16)"),
            Parameter("use_int4", "False"),
        ),
        (AiterCall(("x",), ("layout",)),),
        caller="experts, fp4_linear",
    ),
    "aiter.greedy_sample": AiterCallable(
        "aiter.greedy_sample",
        (
            Parameter("out", None),
            Parameter("input", None),
        ),
        (AiterCall(("out", "input")),),
    ),
    "aiter.mixed_sample_outer_exponential": AiterCallable(
        "aiter.mixed_sample_outer_exponential",
        (
            Parameter("out", None),
            Parameter("input", None),
            Parameter("exponentials", None),
            Parameter("temperatures", None),
            Parameter("eps", "1e-10"),
        ),
        (AiterCall(("out", "input", "exponentials", "temperatures"), ("eps",)),),
    ),
    "aiter.ops.sampling.top_p_sampling_from_probs": AiterCallable(
        "aiter.ops.sampling.top_p_sampling_from_probs",
        (
            Parameter("probs", None),
            Parameter("indices", None),
            Parameter("maybe_top_p_arr", None),
            Parameter("top_p_val", None),
            Parameter("deterministic", "False"),
        ),
        (AiterCall(("probs", "indices", "maybe_top_p_arr", "top_p_val"), ("deterministic",)),),
    ),
    "aiter.ops.sampling.top_k_top_p_sampling_from_probs": AiterCallable(
        "aiter.ops.sampling.top_k_top_p_sampling_from_probs",
        (
            Parameter("probs", None),
            Parameter("indices", None),
            Parameter("maybe_top_k_arr", None),
            Parameter("top_k_val", None),
            Parameter("maybe_top_p_arr", None),
            Parameter("top_p_val", None),
            Parameter("deterministic", "False"),
        ),
        (
            AiterCall(
                ("probs", "indices", "maybe_top_k_arr", "top_k_val", "maybe_top_p_arr", "top_p_val"), ("deterministic",)
            ),
        ),
    ),
    "aiter.ops.sampling.top_k_renorm_probs": AiterCallable(
        "aiter.ops.sampling.top_k_renorm_probs",
        (
            Parameter("probs", None),
            Parameter("maybe_top_k_arr", None),
            Parameter("top_k_val", None),
        ),
        (AiterCall(("probs", "maybe_top_k_arr", "top_k_val")),),
    ),
    "aiter.ops.triton.topk.topk": AiterCallable(
        "aiter.ops.triton.topk.topk",
        (
            Parameter("x", None),
            Parameter("k", None),
            Parameter("dim", "-1", True),
            Parameter("largest", "True", True),
            Parameter("sorted", "True", True),
            Parameter("tiny_row_thresh", "MAX_TINY_ROW", True),
        ),
        (AiterCall(("x", "k")),),
    ),
}

TABLES: tuple[KernelTable, ...] = (
    KernelTable(
        "aiter_meta/hsa/gfx942/pa/pa_asm.csv",
        "knl_file",
        "decoding over the shuffled cache",
        (
            (
                ("qType", "bf16"),
                ("kvType", "bf16"),
                ("Gqa", "8"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "bf16"),
                ("kvType", "bf16"),
                ("Gqa", "16"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "bf16"),
                ("kvType", "fp8"),
                ("Gqa", "8"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "bf16"),
                ("kvType", "fp8"),
                ("Gqa", "16"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "fp16"),
                ("kvType", "fp16"),
                ("Gqa", "8"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "fp16"),
                ("kvType", "fp16"),
                ("Gqa", "16"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "fp16"),
                ("kvType", "fp8"),
                ("Gqa", "8"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "fp16"),
                ("kvType", "fp8"),
                ("Gqa", "16"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
        ),
    ),
    KernelTable(
        "aiter_meta/hsa/gfx950/pa/pa_asm.csv",
        "knl_file",
        "decoding over the shuffled cache",
        (
            (
                ("qType", "bf16"),
                ("kvType", "bf16"),
                ("Gqa", "8"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "bf16"),
                ("kvType", "bf16"),
                ("Gqa", "16"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "bf16"),
                ("kvType", "fp8"),
                ("Gqa", "8"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "bf16"),
                ("kvType", "fp8"),
                ("Gqa", "16"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "fp16"),
                ("kvType", "fp16"),
                ("Gqa", "8"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "fp16"),
                ("kvType", "fp16"),
                ("Gqa", "16"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "fp16"),
                ("kvType", "fp8"),
                ("Gqa", "8"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
            (
                ("qType", "fp16"),
                ("kvType", "fp8"),
                ("Gqa", "16"),
                ("Mtp", "0"),
                ("Msk", "0"),
                ("Hp", "0"),
                ("blkSz", "16"),
            ),
        ),
    ),
    KernelTable(
        "aiter_meta/hsa/gfx950/f4gemm/f4gemm_bf16_per1x32Fp4.csv",
        "co_name",
        "fp4 products of any number of whole 128 outputs",
        (
            (("tile_m", "32"), ("tile_n", "128"), ("splitK", "0"), ("bpreshuffle", "1")),
            (("tile_m", "256"), ("tile_n", "128"), ("splitK", "0"), ("bpreshuffle", "1")),
        ),
    ),
)

SOURCE_LINES: tuple[SourceLine, ...] = (
    SourceLine(
        "aiter/ops/mha.py",
        "if max_seqlen_q == 1 and alibi_slopes is None: causal = False",
        "the module of flash attention that is compiled, at the first call of its kind, is another one for rows of one query",
    ),
    SourceLine(
        "aiter/ops/mha.py",
        "if not causal and window_size_left == -1 and window_size_right == -1:",
        "unless a side of the window is limited, as the wrapper does",
    ),
    SourceLine(
        "aiter_meta/csrc/py_itfs_cu/asm_pa.cu",
        "torch::Tensor& K, // [num_blocks, num_kv_heads, head_size/x, block_size, x]",
        "the keys that pa_fwd_asm reads",
    ),
    SourceLine(
        "aiter_meta/csrc/py_itfs_cu/asm_pa.cu",
        "torch::Tensor& V, // [num_blocks, num_kv_heads, block_size/X, head_size, X]",
        "the values that pa_fwd_asm reads",
    ),
    SourceLine(
        "aiter_meta/csrc/py_itfs_cu/asm_pa.cu",
        "float k_scalar = sqrt(dim);",
        "pa_fwd_asm scales by 1 / sqrt(D) and nothing else, so the wrapper scales q for any other",
    ),
    SourceLine(
        "aiter_meta/csrc/py_itfs_cu/asm_pa.cu",
        "const std::vector<int> gqa_flags = {gqa, (gqa + 7) / 8 * 8};",
        "a group of query heads is rounded up to 8 or 16",
    ),
    SourceLine(
        "aiter_meta/csrc/py_itfs_cu/asm_pa.cu",
        "(cfg.hp == hp || hp == 1)",
        "high_precision 1, the default, takes any kernel, so the wrapper passes 0",
    ),
    SourceLine(
        "aiter/ops/triton/unified_attention.py",
        "num_stages_2d = 3 num_warps = 2 TILE_SIZE = block_size",
        "decodes have whole blocks in shared memory, so the wrappers take blocks of up to 64 tokens",
    ),
    SourceLine(
        "aiter/ops/triton/unified_attention.py",
        "or (max_seqlen_k <= 512)",
        "keys are not split where the wrapper says that there are so few",
    ),
    SourceLine(
        "aiter/ops/triton/_triton_kernels/unified_attention.py",
        "act_num_segments, dtype=tl.int32 ) if HEAD_SIZE_PADDED != HEAD_SIZE: dim_mask = offs_d < HEAD_SIZE",
        "a name without a value, so the wrapper has no keys split for heads that are no power of two",
    ),
    SourceLine(
        "aiter/ops/triton/unified_attention.py",
        "SLIDING_WINDOW = 1 + window_size[0]",
        "what unified_attention makes of a window",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/cache_kernels.cu",
        "//[num_blocks, num_heads, block_size/X, head_size, X]",
        "the values' half of the shuffled layout",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/cache_kernels.cu",
        "x_idx * block_size * x + block_offset * x + x_offset;",
        "the keys' half of the shuffled layout",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/cache_kernels.cu",
        "head_idx * head_size * block_size + x_idx_v * head_size * x + head_offset * x + x_offset_v;",
        "the values' half of the shuffled layout",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/cache_kernels.cu",
        "block_offset * num_heads * head_size + head_idx * head_size + head_offset;",
        "the flash layout",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/cache_kernels.cu",
        "k_scale == nullptr ? 1.0f : 1 / (*k_scale);",
        "reshape_and_cache without scales divides by nothing",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/topk_softmax_kernels_group.cu",
        "if constexpr(THREAD_PER_GRP == 8) return 3;",
        "with fewer than eight groups the lanes of a group are not joined, so the wrapper refuses 2 and 4 groups with a bias",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/topk_softmax_kernels_group.cu",
        "const int end = experts_per_group / vec_size;",
        "experts are read in runs, which may not lie in two groups",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/topk_softmax_kernels_group.cu",
        "topk_indice = threadIdx.x == k ? max_idx : topk_indice;",
        "at most 64 experts a token",
    ),
    SourceLine(
        "aiter/ops/topk.py",
        "if token_num <= cu_num * 212:",
        "the wrapper routes 8,192 tokens at a time, so that the kernel for more is never taken",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/moe_fused_gate.cu",
        "output_ptr[idx] = scores[ii] / output_sum;",
        "the kernel for more tokens leaves the scale out",
    ),
    SourceLine(
        "aiter/fused_moe.py", "gate, up = act_input.split([inter_dim, inter_dim], dim=-1)", "the gates come first"
    ),
    SourceLine("aiter/fused_moe.py", "quant_remap = {QuantType.per_128x128: QuantType.per_1x128}", "block scales"),
    SourceLine(
        "aiter_meta/csrc/include/rocm_ops.hpp",
        '.value("per_Token", QuantType::per_Token)',
        "the enumeration that the wrapper takes from fused_moe's default",
    ),
    SourceLine("aiter_meta/csrc/include/rocm_ops.hpp", '.value("per_128x128", QuantType::per_128x128)', "the same"),
    SourceLine(
        "aiter_meta/csrc/ck_gemm_moe_2stages_codegen/gen_instances.py",
        "V1, 256, 32, 128, 256/sizeof({A0DataType}), 1, 4,",
        "the largest tile takes 256 bytes of inputs, so the intermediate size is filled up to that",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/activation_kernels.cu",
        "out[token_idx * d + idx + j] = ck_tile::type_convert<DTYPE_I>(r);",
        "the last run of a row is written whole, so the wrapper takes whole runs only",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/rope/rope_common.h",
        "using scalar_t_0 = at::BFloat16; \\ switch((TYPE1)) \\ { \\ case at::ScalarType::Float: {",
        "tables are float32 beside queries of 16 bits",
    ),
    SourceLine("aiter/mla.py", "get_mgc = {16: 16, 128: 16}", "heads are filled up to 16 or 128"),
    SourceLine(
        "aiter/mla.py",
        "@functools.lru_cache(maxsize=1) def get_meta_param(",
        "a captured graph would read a tensor that is freed, so the wrapper refuses one",
    ),
    SourceLine(
        "aiter_meta/csrc/py_itfs_cu/asm_mla.cu",
        "int stride_Page = KV.stride(0) * KV.itemsize();",
        "a page is what the first axis of the cache counts, so pages of one token are rows of it",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/quant_kernels.cu",
        "float absMax = 0.f;",
        "the scale of a row of zeros is 0, and the wrapper makes its values zeros again",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/quant_kernels.cu",
        "float absMax = 1e-10f;",
        "a group of zeros has a scale, so the wrapper leaves it alone",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/quant_kernels.cu",
        "? groupId * group_size / 2 + (threadIdx.x % num_thread_per_group) * vec_size_o",
        "fp4 values are placed by a count that has the scales filled up, so the wrapper takes inputs in whole 256 only",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/quant_kernels.cu",
        "return (x / 32 * scaleN_pad) * 32 + (y / 8) * 256 + (y % 4) * 64 + (x % 16) * 4 +",
        "the order of shuffled scales",
    ),
    SourceLine(
        "aiter/utility/fp4_utils.py",
        "scale = scale.permute(0, 3, 5, 2, 4, 1).contiguous()",
        "the same order for a weight's scales",
    ),
    SourceLine(
        "aiter/ops/gemm_op_a4w4.py",
        "return gemm_a4w4_blockscale(A, B, A_scale, B_scale, out, splitK=splitK)",
        "this kernel gets no bias, so the wrapper adds it",
    ),
    SourceLine("aiter/ops/gemm_op_a4w4.py", "out.shape[0] % 32 == 0", "the result is filled up to 32 rows"),
    SourceLine(
        "aiter_meta/csrc/py_itfs_cu/asm_gemm_a4w4.cu",
        "if((N % cfg.tile_N) == 0)",
        "the outputs are filled up to the smallest tile",
    ),
    SourceLine(
        "aiter_meta/csrc/kernels/sample_kernels.cu",
        "greedy_sample_kernel<input_dtype, block_size, warpSize, 16><<<grid, block>>>(",
        "greedy_sample runs on the default stream, so it is not bound; when this changes it can be",
    ),
)
