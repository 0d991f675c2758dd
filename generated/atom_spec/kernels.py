# Derived from spec/kernels.yaml by spec/codegen; edit that and run `make generate`.
"""Every kernel operation, as data: its arguments, its group, the order of backends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArgumentType = Literal["tensor", "tensor or None", "int", "int or None", "float", "bool", "object"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, or the result. in_place: the operation may overwrite the tensor. dtypes: float is the model's."""

    name: str
    type: ArgumentType
    shape: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    in_place: bool = False
    help: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the kernel table. Arguments are positional and have no defaults."""

    name: str
    group: str
    summary: str
    arguments: tuple[Argument, ...]
    returns: Argument


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that belong together. same: what must be equal for all of them."""

    name: str
    same: Literal["layout", "backend", "nothing"]
    help: str


@dataclass(frozen=True, slots=True)
class Backend:
    """A set of implementations. layout: how it lays out the KV cache."""

    name: str
    layout: str
    help: str


PLATFORMS: dict[str, tuple[str, ...]] = {
    "rocm": ("aiter", "triton", "reference"),
    "cuda": ("triton", "reference"),
    "cpu": ("reference",),
}

BACKENDS: dict[str, Backend] = {
    "reference": Backend(
        name="reference", layout="block_major", help="plain torch; runs everywhere; the oracle of the others"
    ),
    "triton": Backend(name="triton", layout="paged_heads", help="Triton, for CUDA and ROCm"),
    "torch_flash": Backend(
        name="torch_flash",
        layout="paged_heads",
        help="as triton, and whole prompts by torch's flash attention also on Hopper; on request, to compare",
    ),
    "aiter": Backend(name="aiter", layout="shuffled", help="AITER's kernels, for ROCm"),
}

GROUPS: dict[str, Group] = {
    "linear": Group(name="linear", same="backend", help="Projections; the packed weight is the backend's."),
    "fp8_linear": Group(
        name="fp8_linear",
        same="backend",
        help="Projections with 8-bit weights, and what comes before them; the packed weight is the backend's.",
    ),
    "fp4_linear": Group(
        name="fp4_linear", same="backend", help="Projections with MXFP4 weights; the packed weight is the backend's."
    ),
    "norm": Group(name="norm", same="nothing", help="RMSNorm."),
    "activation": Group(name="activation", same="nothing", help="Gated activations."),
    "routing": Group(name="routing", same="nothing", help="Which experts a token goes to, and by what weights."),
    "experts": Group(name="experts", same="backend", help="Mixtures of experts; the packed weights are the backend's."),
    "attention": Group(name="attention", same="layout", help="The paged KV cache and what reads and writes it."),
    "mla": Group(
        name="mla",
        same="backend",
        help="Latent attention (MLA): a cache of what keys and values are made of. Prompts expand it and attend as usual.",
    ),
    "sampling": Group(name="sampling", same="nothing", help="From logits to token ids."),
}

OPERATIONS: dict[str, Operation] = {
    "linear_pack": Operation(
        name="linear_pack",
        group="linear",
        summary="Bring a loaded weight into the form that `linear` reads fastest. Called once a weight; may keep `weight` itself.",
        arguments=(
            Argument(name="weight", type="tensor", shape=("N", "K"), dtypes=("float",)),
            Argument(name="bias", type="tensor or None", shape=("N",), dtypes=("float",)),
        ),
        returns=Argument(name="returns", type="object", help="the packed weight"),
    ),
    "linear": Operation(
        name="linear",
        group="linear",
        summary="x @ weight.T + bias.",
        arguments=(
            Argument(name="x", type="tensor", shape=("T", "K"), dtypes=("float",)),
            Argument(name="packed", type="object", help="what linear_pack returned"),
        ),
        returns=Argument(name="returns", type="tensor", shape=("T", "N"), dtypes=("float",)),
    ),
    "logits": Operation(
        name="logits",
        group="linear",
        summary="As `linear`, of a head's weight; its sums are left in float32 on a GPU, so that tokens of nearly the same logit keep their order.",
        arguments=(
            Argument(name="x", type="tensor", shape=("T", "K"), dtypes=("float",)),
            Argument(name="packed", type="object", help="what linear_pack returned"),
        ),
        returns=Argument(name="returns", type="tensor", shape=("T", "N"), dtypes=("float",)),
    ),
    "fp8_linear_pack": Operation(
        name="fp8_linear_pack",
        group="fp8_linear",
        summary="As `linear_pack`, of a weight in fp8; weight[n, k] * scales[n / block_rows, k / 128 or 0] is the weight that is meant.",
        arguments=(
            Argument(name="weight", type="tensor", shape=("N", "K"), dtypes=("float8_e4m3fn",)),
            Argument(
                name="scales", type="tensor", shape=("ceil(N/block_rows)", "1 or ceil(K/128)"), dtypes=("float32",)
            ),
            Argument(name="block_rows", type="int", help="1 or 128"),
            Argument(name="bias", type="tensor or None", shape=("N",), dtypes=("float",)),
            Argument(name="dtype", type="object", help="the torch.dtype that x will have"),
        ),
        returns=Argument(name="returns", type="object", help="the packed weight"),
    ),
    "fp8_linear": Operation(
        name="fp8_linear",
        group="fp8_linear",
        summary="As `linear`, x rounded to fp8 first, with a scale a token, or a token and 128 inputs where the weight has several; summed in float32.",
        arguments=(
            Argument(name="x", type="object", help="[T, K], or what an operation of this group made for this weight"),
            Argument(name="packed", type="object", help="what fp8_linear_pack returned"),
        ),
        returns=Argument(name="returns", type="tensor", shape=("T", "N"), dtypes=("float",)),
    ),
    "fp8_rms_norm": Operation(
        name="fp8_rms_norm",
        group="fp8_linear",
        summary="As `rms_norm`, or as `add_rms_norm` where there is a residual, for `fp8_linear` with this weight to read.",
        arguments=(
            Argument(name="x", type="tensor", shape=("T", "K"), dtypes=("float",)),
            Argument(name="residual", type="tensor or None", shape=("T", "K"), dtypes=("float",), in_place=True),
            Argument(name="weight", type="tensor", shape=("K",), dtypes=("float",)),
            Argument(name="eps", type="float"),
            Argument(name="packed", type="object", help="what fp8_linear_pack returned"),
        ),
        returns=Argument(name="returns", type="object", help="[T, K] as the backend likes it, rounded or still to be"),
    ),
    "fp8_silu_and_mul": Operation(
        name="fp8_silu_and_mul",
        group="fp8_linear",
        summary="As `silu_and_mul`, for `fp8_linear` with this weight to read.",
        arguments=(
            Argument(name="x", type="tensor", shape=("T", "2K"), dtypes=("float",)),
            Argument(name="packed", type="object", help="what fp8_linear_pack returned"),
        ),
        returns=Argument(name="returns", type="object", help="[T, K] as the backend likes it, rounded or still to be"),
    ),
    "fp4_linear_pack": Operation(
        name="fp4_linear_pack",
        group="fp4_linear",
        summary="As `linear_pack`, of a weight in e2m1 with a power of two, 2 ** (scale - 127), for 32 inputs; K is a multiple of 32.",
        arguments=(
            Argument(
                name="weight",
                type="tensor",
                shape=("N", "K/2"),
                dtypes=("uint8",),
                help="two values a byte, the first in the low bits",
            ),
            Argument(name="scales", type="tensor", shape=("N", "K/32"), dtypes=("uint8",)),
            Argument(name="bias", type="tensor or None", shape=("N",), dtypes=("float",)),
            Argument(name="dtype", type="object", help="the torch.dtype that x will have"),
        ),
        returns=Argument(name="returns", type="object", help="the packed weight"),
    ),
    "fp4_linear": Operation(
        name="fp4_linear",
        group="fp4_linear",
        summary="As `linear`; x is rounded to fp4 first, with a scale for 32 inputs, where the backend's product takes nothing else.",
        arguments=(
            Argument(name="x", type="tensor", shape=("T", "K"), dtypes=("float",)),
            Argument(name="packed", type="object", help="what fp4_linear_pack returned"),
        ),
        returns=Argument(name="returns", type="tensor", shape=("T", "N"), dtypes=("float",)),
    ),
    "rms_norm": Operation(
        name="rms_norm",
        group="norm",
        summary="x / sqrt(mean(x^2) + eps) * weight over the last axis, the mean in float32.",
        arguments=(
            Argument(name="x", type="tensor", shape=("T", "H"), dtypes=("float",)),
            Argument(name="weight", type="tensor", shape=("H",), dtypes=("float",)),
            Argument(name="eps", type="float"),
        ),
        returns=Argument(name="returns", type="tensor", shape=("T", "H"), dtypes=("float",)),
    ),
    "add_rms_norm": Operation(
        name="add_rms_norm",
        group="norm",
        summary="residual += x; returns the sum normed, as it was before or after it was rounded into the residual.",
        arguments=(
            Argument(name="x", type="tensor", shape=("T", "H"), dtypes=("float",)),
            Argument(name="residual", type="tensor", shape=("T", "H"), dtypes=("float",), in_place=True),
            Argument(name="weight", type="tensor", shape=("H",), dtypes=("float",)),
            Argument(name="eps", type="float"),
        ),
        returns=Argument(name="returns", type="tensor", shape=("T", "H"), dtypes=("float",)),
    ),
    "silu_and_mul": Operation(
        name="silu_and_mul",
        group="activation",
        summary="silu(first half of x) * second half of x.",
        arguments=(Argument(name="x", type="tensor", shape=("T", "2I"), dtypes=("float",)),),
        returns=Argument(name="returns", type="tensor", shape=("T", "I"), dtypes=("float",)),
    ),
    "route_softmax": Operation(
        name="route_softmax",
        group="routing",
        summary="Softmax over the experts in float32, and its largest; of equal ones the lowest expert first.",
        arguments=(
            Argument(name="logits", type="tensor", shape=("T", "E"), dtypes=("float",)),
            Argument(name="top_k", type="int"),
            Argument(name="renormalize", type="bool", help="divide the weights by their sum"),
        ),
        returns=Argument(
            name="returns", type="object", help="weights [T, k] float32, largest first; experts [T, k] int32"
        ),
    ),
    "route_grouped": Operation(
        name="route_grouped",
        group="routing",
        summary="As DeepSeek's models: choose groups of experts, then experts in them. A group counts by the sum of its best two scores plus bias, or without bias by its best score. Of equal ones any.",
        arguments=(
            Argument(name="logits", type="tensor", shape=("T", "E"), dtypes=("float",)),
            Argument(
                name="bias",
                type="tensor or None",
                shape=("E",),
                dtypes=("float32",),
                help="added to the scores to choose by, not to the weights",
            ),
            Argument(
                name="num_groups", type="int", help="of E / num_groups experts that follow each other; 1 is no groups"
            ),
            Argument(name="top_groups", type="int"),
            Argument(name="top_k", type="int"),
            Argument(name="sigmoid", type="bool", help="scores are sigmoids of the logits, else their softmax"),
            Argument(name="renormalize", type="bool"),
            Argument(name="scale", type="float", help="of the weights in the end"),
        ),
        returns=Argument(
            name="returns", type="object", help="weights [T, k] float32 and experts [T, k] int32, in any order"
        ),
    ),
    "experts_pack": Operation(
        name="experts_pack",
        group="experts",
        summary="Bring the weights of all experts into the form that `fused_experts` reads fastest. Called once a layer; may keep them.",
        arguments=(
            Argument(name="gate_up", type="tensor", shape=("E", "2I", "H"), dtypes=("float",), help="gates, then ups"),
            Argument(name="down", type="tensor", shape=("E", "H", "I"), dtypes=("float",)),
        ),
        returns=Argument(name="returns", type="object", help="the packed experts"),
    ),
    "fp8_experts_pack": Operation(
        name="fp8_experts_pack",
        group="experts",
        summary="As `experts_pack`, of weights in fp8 with a scale for each output (block_rows 1, scales [E, 2I, 1] and [E, H, 1]) or for 128 x 128 weights (block_rows 128, I a multiple of it).",
        arguments=(
            Argument(name="gate_up", type="tensor", shape=("E", "2I", "H"), dtypes=("float8_e4m3fn",)),
            Argument(
                name="gate_up_scales",
                type="tensor",
                shape=("E", "2I/block_rows", "1 or ceil(H/128)"),
                dtypes=("float32",),
            ),
            Argument(name="down", type="tensor", shape=("E", "H", "I"), dtypes=("float8_e4m3fn",)),
            Argument(
                name="down_scales",
                type="tensor",
                shape=("E", "ceil(H/block_rows)", "1 or ceil(I/128)"),
                dtypes=("float32",),
            ),
            Argument(name="block_rows", type="int", help="1 or 128"),
            Argument(name="dtype", type="object", help="the torch.dtype that x will have"),
        ),
        returns=Argument(name="returns", type="object", help="the packed experts"),
    ),
    "fused_experts": Operation(
        name="fused_experts",
        group="experts",
        summary="The sum over a token's experts of weight * (silu_and_mul(x @ gate_up.T) @ down.T). With fp8 weights, x and what silu_and_mul makes are rounded as `fp8_linear` rounds.",
        arguments=(
            Argument(name="x", type="tensor", shape=("T", "H"), dtypes=("float",)),
            Argument(name="packed", type="object", help="what experts_pack or fp8_experts_pack returned"),
            Argument(name="weights", type="tensor", shape=("T", "k"), dtypes=("float32",)),
            Argument(
                name="experts", type="tensor", shape=("T", "k"), dtypes=("int32",), help="no expert twice in a row"
            ),
        ),
        returns=Argument(name="returns", type="tensor", shape=("T", "H"), dtypes=("float",)),
    ),
    "kv_cache_shape": Operation(
        name="kv_cache_shape",
        group="attention",
        summary="Shape of one layer's cache in this backend's layout, keys and values in one tensor.",
        arguments=(
            Argument(name="num_blocks", type="int"),
            Argument(name="block_size", type="int"),
            Argument(name="num_kv_heads", type="int"),
            Argument(name="head_dim", type="int"),
        ),
        returns=Argument(name="returns", type="object", help="a tuple of int"),
    ),
    "attention_plan": Operation(
        name="attention_plan",
        group="attention",
        summary="Everything about a step that attention needs and that no layer changes (masks, gather indices, work split); made once a step.",
        arguments=(Argument(name="step", type="object", help="atom.model_ops.step.StepInputs"),),
        returns=Argument(name="returns", type="object", help="the plan"),
    ),
    "qkv_rope_write": Operation(
        name="qkv_rope_write",
        group="attention",
        summary="Split a fused projection, norm each head of q and k where a weight is given, rotate them, and write k and v into the cache.",
        arguments=(
            Argument(
                name="qkv",
                type="tensor",
                shape=("T", "(HQ+2HK)*D"),
                dtypes=("float",),
                in_place=True,
                help="may be overwritten",
            ),
            Argument(
                name="qk_norm",
                type="tensor or None",
                shape=("HQ+HK", "D"),
                dtypes=("float",),
                help="the weight of each head's RMSNorm",
            ),
            Argument(name="eps", type="float"),
            Argument(
                name="cos_sin",
                type="tensor",
                shape=("P", "R"),
                dtypes=("float",),
                help="R/2 cosines, then R/2 sines, in the type of qkv or in float32; pairs are (i, i + R/2)",
            ),
            Argument(name="kv_cache", type="tensor", shape=("kv_cache_shape",), dtypes=("kv",), in_place=True),
            Argument(
                name="kv_scales",
                type="tensor or None",
                shape=("2", "HK"),
                dtypes=("float32",),
                help="of an fp8 cache, keys then values; it holds x / scale, saturated",
            ),
            Argument(name="plan", type="object"),
            Argument(name="num_heads", type="int"),
            Argument(name="num_kv_heads", type="int"),
        ),
        returns=Argument(
            name="returns",
            type="object",
            help="q [T, HQ, D], k [T, HK, D], v [T, HK, D] after norm and rotation, k and v of prefill rows as an fp8 cache rounds them; may be views of qkv",
        ),
    ),
    "attention_decode": Operation(
        name="attention_decode",
        group="attention",
        summary="Attention of the step's decode rows (its first Td tokens) over the cache, their own tokens included.",
        arguments=(
            Argument(name="q", type="tensor", shape=("Td", "HQ", "D"), dtypes=("float",)),
            Argument(name="kv_cache", type="tensor", shape=("kv_cache_shape",), dtypes=("kv",)),
            Argument(name="kv_scales", type="tensor or None", shape=("2", "HK"), dtypes=("float32",)),
            Argument(name="plan", type="object"),
            Argument(name="scale", type="float"),
            Argument(name="window", type="int or None", help="keys a query sees, itself included; None is all"),
            Argument(
                name="soft_cap",
                type="float",
                help="0 is off; else scaled logits become soft_cap * tanh(logits / soft_cap)",
            ),
            Argument(
                name="sinks",
                type="tensor or None",
                shape=("HQ",),
                dtypes=("float32",),
                help="one more logit a head in the softmax's denominator, not capped",
            ),
        ),
        returns=Argument(name="returns", type="tensor", shape=("Td", "HQ*D"), dtypes=("float",)),
    ),
    "attention_prefill": Operation(
        name="attention_prefill",
        group="attention",
        summary="Causal attention of the step's prefill rows; k and v are the rows' own, earlier tokens come from the cache.",
        arguments=(
            Argument(name="q", type="tensor", shape=("Tp", "HQ", "D"), dtypes=("float",)),
            Argument(name="k", type="tensor", shape=("Tp", "HK", "D"), dtypes=("float",)),
            Argument(name="v", type="tensor", shape=("Tp", "HK", "D"), dtypes=("float",)),
            Argument(name="kv_cache", type="tensor", shape=("kv_cache_shape",), dtypes=("kv",)),
            Argument(name="kv_scales", type="tensor or None", shape=("2", "HK"), dtypes=("float32",)),
            Argument(name="plan", type="object"),
            Argument(name="scale", type="float"),
            Argument(name="window", type="int or None"),
            Argument(name="soft_cap", type="float"),
            Argument(name="sinks", type="tensor or None", shape=("HQ",), dtypes=("float32",)),
        ),
        returns=Argument(name="returns", type="tensor", shape=("Tp", "HQ*D"), dtypes=("float",)),
    ),
    "mla_cache_shape": Operation(
        name="mla_cache_shape",
        group="mla",
        summary="Shape of one layer's cache of latents.",
        arguments=(
            Argument(name="num_blocks", type="int"),
            Argument(name="block_size", type="int"),
            Argument(name="width", type="int", help="C + R"),
        ),
        returns=Argument(name="returns", type="object", help="a tuple of int"),
    ),
    "mla_plan": Operation(
        name="mla_plan",
        group="mla",
        summary="As `attention_plan`, for this group.",
        arguments=(Argument(name="step", type="object", help="atom.model_ops.step.StepInputs"),),
        returns=Argument(name="returns", type="object", help="the plan"),
    ),
    "mla_rope_write": Operation(
        name="mla_rope_write",
        group="mla",
        summary="Norm the compressed part of the latents, rotate the rest and the last R of each head of q, and write the latents into the cache.",
        arguments=(
            Argument(name="q", type="tensor", shape=("T", "HQ", "D"), dtypes=("float",), in_place=True),
            Argument(
                name="latents",
                type="tensor",
                shape=("T", "C+R"),
                dtypes=("float",),
                in_place=True,
                help="may be overwritten",
            ),
            Argument(name="norm", type="tensor", shape=("C",), dtypes=("float",), help="the weight of the RMSNorm"),
            Argument(name="eps", type="float"),
            Argument(
                name="cos_sin", type="tensor", shape=("P", "R"), dtypes=("float",), help="as qkv_rope_write has it"
            ),
            Argument(name="kv_cache", type="tensor", shape=("mla_cache_shape",), dtypes=("float",), in_place=True),
            Argument(name="plan", type="object"),
        ),
        returns=Argument(
            name="returns",
            type="object",
            help="the latents [T, C] after norm and [T, R] after rotation; may be views of `latents`",
        ),
    ),
    "mla_decode": Operation(
        name="mla_decode",
        group="mla",
        summary="Attention of the step's decode rows over the cached latents, their own included; keys are all of a latent, values its first C.",
        arguments=(
            Argument(
                name="q",
                type="tensor",
                shape=("Td", "HQ", "C+R"),
                dtypes=("float",),
                help="its first C are what the heads' projections of keys made of q",
            ),
            Argument(name="kv_cache", type="tensor", shape=("mla_cache_shape",), dtypes=("float",)),
            Argument(name="plan", type="object"),
            Argument(name="scale", type="float"),
            Argument(name="rank", type="int", help="C"),
        ),
        returns=Argument(name="returns", type="tensor", shape=("Td", "HQ", "C"), dtypes=("float",)),
    ),
    "philox_uniform": Operation(
        name="philox_uniform",
        group="sampling",
        summary="One uniform in [0, 1) a row, from Philox4x32-10 with the seed as key and the offset as counter.",
        arguments=(
            Argument(name="seeds", type="tensor", shape=("B",), dtypes=("int64",)),
            Argument(name="offsets", type="tensor", shape=("B",), dtypes=("int64",)),
        ),
        returns=Argument(name="returns", type="tensor", shape=("B",), dtypes=("float32",)),
    ),
    "mask_logits": Operation(
        name="mask_logits",
        group="sampling",
        summary="Set the logits of some rows to -inf where the row's mask has a 0, and return the logits. Bit t % 32 of word t / 32 is token t.",
        arguments=(
            Argument(name="logits", type="tensor", shape=("B", "V"), dtypes=("float",), in_place=True),
            Argument(name="rows", type="tensor", shape=("M",), dtypes=("int64",), help="no row twice"),
            Argument(name="masks", type="tensor", shape=("M", "ceil(V/32)"), dtypes=("int32",)),
        ),
        returns=Argument(name="returns", type="tensor", shape=("B", "V"), dtypes=("float",), help="`logits`"),
    ),
    "greedy_sample": Operation(
        name="greedy_sample",
        group="sampling",
        summary="Index of the largest logit, the lowest index on a tie.",
        arguments=(Argument(name="logits", type="tensor", shape=("B", "V"), dtypes=("float",)),),
        returns=Argument(name="returns", type="tensor", shape=("B",), dtypes=("int64",)),
    ),
    "sample": Operation(
        name="sample",
        group="sampling",
        summary="Draw one token a row by inverting the cumulative distribution in vocabulary order, after temperature, top-k, top-p and min-p.",
        arguments=(
            Argument(name="logits", type="tensor", shape=("B", "V"), dtypes=("float",)),
            Argument(name="temperature", type="tensor", shape=("B",), dtypes=("float32",), help="above 0"),
            Argument(name="top_k", type="tensor", shape=("B",), dtypes=("int32",), help="0 is off"),
            Argument(name="top_p", type="tensor", shape=("B",), dtypes=("float32",), help="1 is off"),
            Argument(name="min_p", type="tensor", shape=("B",), dtypes=("float32",), help="0 is off"),
            Argument(name="uniform", type="tensor", shape=("B",), dtypes=("float32",)),
        ),
        returns=Argument(name="returns", type="tensor", shape=("B",), dtypes=("int64",)),
    ),
    "verify_greedy": Operation(
        name="verify_greedy",
        group="sampling",
        summary="Keep of each row's draft tokens those that the model would have chosen itself, up to the first it would not, and add the model's own next token.",
        arguments=(
            Argument(name="drafts", type="tensor", shape=("B", "S"), dtypes=("int64",)),
            Argument(name="num_drafts", type="tensor", shape=("B",), dtypes=("int32",), help="of the row, at most S"),
            Argument(
                name="targets",
                type="tensor",
                shape=("B", "S+1"),
                dtypes=("int64",),
                help="the model's choice before each draft token and after the last",
            ),
        ),
        returns=Argument(
            name="returns",
            type="object",
            help="tokens [B, S+1] int64, -1 behind a row's last; lengths [B] int32, at least 1",
        ),
    ),
}
