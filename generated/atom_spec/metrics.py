# Derived from spec/metrics.yaml by spec/codegen; edit that and run `make generate`.
"""Every Prometheus metric, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. A counter's `name` is without `_total`, which the text format adds.

    engine: fields of EngineStats that it is read from; empty when the API process sets it. combine: what two fields
    make together (ratio is 0 when the second is 0). buckets: upper bounds of a histogram, without infinity.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    engine: tuple[str, ...] = ()
    combine: Literal["ratio", "difference"] | None = None


METRICS: tuple[Metric, ...] = (
    Metric(
        name="atom:requests",
        kind="counter",
        help="Requests that ended, by endpoint and outcome (stop, length, tool_calls, error, aborted; the first choice decides).",
        labels=("endpoint", "outcome"),
    ),
    Metric(
        name="atom:requests_received",
        kind="counter",
        help="Requests accepted for the engine, by endpoint.",
        labels=("endpoint",),
    ),
    Metric(name="atom:requests_in_progress", kind="gauge", help="Requests accepted and not ended."),
    Metric(
        name="atom:http_responses",
        kind="counter",
        help="HTTP responses, by the contract's path and status.",
        labels=("path", "status"),
    ),
    Metric(
        name="atom:undeclared_tool_calls",
        kind="counter",
        help="Complete calls in an answer that name no declared tool and were left as text.",
    ),
    Metric(
        name="atom:stream_longest_silence_seconds",
        kind="gauge",
        help="Longest time that a stream open now has gone without a frame; 0 without streams.",
    ),
    Metric(
        name="atom:time_to_first_token_seconds",
        kind="histogram",
        help="From the request's arrival to its first token.",
        labels=("endpoint",),
        buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    ),
    Metric(
        name="atom:inter_token_latency_seconds",
        kind="histogram",
        help="Between two deliveries of a request's tokens, divided by the tokens in the later one.",
        labels=("endpoint",),
        buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
    ),
    Metric(
        name="atom:request_latency_seconds",
        kind="histogram",
        help="From the request's arrival to its last token.",
        labels=("endpoint",),
        buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
    ),
    Metric(
        name="atom:request_queue_time_seconds",
        kind="histogram",
        help="From the sequence's arrival at the engine to its first step.",
        buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    ),
    Metric(
        name="atom:request_prompt_tokens",
        kind="histogram",
        help="Tokens of a request's prompts.",
        labels=("endpoint",),
        buckets=(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144),
    ),
    Metric(
        name="atom:request_generation_tokens",
        kind="histogram",
        help="Tokens generated for a request, all choices together.",
        labels=("endpoint",),
        buckets=(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144),
    ),
    Metric(name="atom:engine_up", kind="gauge", help="1 while the engine answers, 0 once it is dead."),
    Metric(name="atom:requests_running", kind="gauge", help="Sequences that run.", engine=("num_running",)),
    Metric(
        name="atom:requests_waiting",
        kind="gauge",
        help="Sequences that wait for their first step, or again after a preemption.",
        engine=("num_waiting",),
    ),
    Metric(
        name="atom:requests_partial_prefill",
        kind="gauge",
        help="Sequences whose prompt is computed in part.",
        engine=("num_partial_prefills",),
    ),
    Metric(
        name="atom:kv_cache_blocks_total", kind="gauge", help="Blocks of the KV cache.", engine=("num_blocks_total",)
    ),
    Metric(
        name="atom:kv_cache_blocks_used", kind="gauge", help="Blocks that sequences hold.", engine=("num_blocks_used",)
    ),
    Metric(
        name="atom:kv_cache_blocks_free",
        kind="gauge",
        help="Blocks that no sequence holds; they may still hold reusable prefixes.",
        engine=("num_blocks_total", "num_blocks_used"),
        combine="difference",
    ),
    Metric(
        name="atom:kv_cache_blocks_indexed",
        kind="gauge",
        help="Blocks that a prompt with the same beginning can reuse.",
        engine=("num_blocks_cached",),
    ),
    Metric(
        name="atom:kv_cache_usage_ratio",
        kind="gauge",
        help="Share of the blocks that sequences hold.",
        engine=("num_blocks_used", "num_blocks_total"),
        combine="ratio",
    ),
    Metric(
        name="atom:prefix_cache_hit_ratio",
        kind="gauge",
        help="Share of all prompt tokens that the prefix cache had.",
        engine=("cached_prompt_tokens", "prompt_tokens"),
        combine="ratio",
    ),
    Metric(
        name="atom:prompt_tokens",
        kind="counter",
        help="Tokens of prompts, cached ones included.",
        engine=("prompt_tokens",),
    ),
    Metric(
        name="atom:prefix_cache_cached_tokens",
        kind="counter",
        help="Prompt tokens that the prefix cache had.",
        engine=("cached_prompt_tokens",),
    ),
    Metric(name="atom:generation_tokens", kind="counter", help="Tokens generated.", engine=("generation_tokens",)),
    Metric(
        name="atom:requests_finished",
        kind="counter",
        help="Sequences that ended by themselves or at a limit.",
        engine=("requests_finished",),
    ),
    Metric(
        name="atom:requests_aborted",
        kind="counter",
        help="Sequences that were dropped because nobody waited for them any more.",
        engine=("requests_aborted",),
    ),
    Metric(
        name="atom:preemptions",
        kind="counter",
        help="Sequences that gave up their blocks and began anew.",
        engine=("preemptions",),
    ),
    Metric(name="atom:engine_steps", kind="counter", help="Steps of the engine.", engine=("steps",)),
    Metric(name="atom:mtp_draft_tokens", kind="counter", help="Draft tokens proposed.", engine=("draft_tokens",)),
    Metric(name="atom:mtp_accepted_tokens", kind="counter", help="Draft tokens accepted.", engine=("accepted_tokens",)),
    Metric(
        name="atom:mtp_acceptance_rate",
        kind="gauge",
        help="Share of the draft tokens that was accepted.",
        engine=("accepted_tokens", "draft_tokens"),
        combine="ratio",
    ),
)
