"""What a step sampled becomes tokens of sequences and the deltas that report them.

Owns the step from a result's rows to `TokenDelta`s. Knows neither slots nor blocks: it says which sequences ended, the
scheduler takes back what they held.
"""

from __future__ import annotations

import msgspec

from atom.model_engine.batch import ScheduledBatch, StepResult
from atom.model_engine.messages import TokenDelta, TokenLogprobs
from atom.model_engine.sequence import Sequence, SequenceStatus


def take_tokens(
    batch: ScheduledBatch, sequences: list[Sequence], result: StepResult
) -> tuple[list[TokenDelta], list[Sequence]]:
    """Append the step's tokens to `sequences` (one a row); returns the deltas and the sequences that ended.

    A row whose sequence ended meanwhile is dropped: the step was launched before that was known.
    """
    deltas: list[TokenDelta] = []
    ended: list[Sequence] = []
    num_plain = 0
    if result.token_ids.shape[1] == 1 and not result.logprobs and not result.errors:
        num_plain = batch.num_decodes
        _take_decodes(sequences, result.token_ids[:num_plain, 0].tolist(), deltas, ended)
    if num_plain == len(sequences):
        return deltas, ended
    tokens = result.token_ids[num_plain:].tolist()
    counts = result.num_tokens[num_plain:].tolist()
    context_lens = batch.context_lens.tolist()
    query_lens = batch.query_lens.tolist()
    for row in range(num_plain, len(sequences)):
        sequence = sequences[row]
        if sequence.status is SequenceStatus.FINISHED:
            continue
        if row in result.prompt_logprobs:
            sequence.add_prompt_logprobs(context_lens[row], result.prompt_logprobs[row])
        index = row - num_plain
        delta = None
        if row in result.errors:
            delta = _failed(sequence, result.errors[row])
        elif counts[index]:
            delta = _take_row(sequence, tokens[index][: counts[index]], result.logprobs.get(row))
        elif sequence.max_length <= sequence.num_prompt_tokens <= context_lens[row] + query_lens[row]:
            sequence.finish_reason = "length"
            delta = _delta(sequence, [], None)
        if delta is not None:
            deltas.append(delta)
            if delta.finish_reason is not None:
                ended.append(sequence)
    return deltas, ended


def _take_decodes(
    sequences: list[Sequence], tokens: list[int], deltas: list[TokenDelta], ended: list[Sequence]
) -> None:
    """The common case, one plain token a row; this loop is most of the cost of a step's result."""
    finished = SequenceStatus.FINISHED
    for sequence, token in zip(sequences, tokens, strict=False):
        if sequence.status is finished:
            continue
        ids = sequence.token_ids
        if token in sequence.stop_ids or len(ids) + 1 >= sequence.max_length:
            delta = _take_row(sequence, [token], None)
            if delta.finish_reason is not None:
                ended.append(sequence)
        else:
            ids.append(token)
            delta = TokenDelta(sequence.request_id, [token], num_cached_tokens=sequence.num_cached_tokens)
        deltas.append(delta)


def _take_row(sequence: Sequence, tokens: list[int], logprobs: list[TokenLogprobs] | None) -> TokenDelta:
    num_kept = sequence.append(tokens)
    return _delta(
        sequence,
        tokens[:num_kept],
        None if logprobs is None else logprobs[: num_kept + (sequence.stop_token is not None)],
    )


def _delta(sequence: Sequence, tokens: list[int], logprobs: list[TokenLogprobs] | None) -> TokenDelta:
    is_first = not sequence.sent_first_delta
    sequence.sent_first_delta = True
    return TokenDelta(
        request_id=sequence.request_id,
        token_ids=tokens,
        finish_reason=sequence.finish_reason,
        stop_token=sequence.stop_token,
        logprobs=logprobs,
        prompt_logprobs=sequence.prompt_logprobs if is_first else None,
        num_cached_tokens=sequence.num_cached_tokens,
        queue_time=sequence.queue_time if is_first else None,
    )


def _failed(sequence: Sequence, error: str) -> TokenDelta:
    sequence.finish_reason = "error"
    return msgspec.structs.replace(_delta(sequence, [], None), error=error)


def ending_delta(sequence: Sequence) -> TokenDelta:
    """The delta that ends a sequence without a new token, as when its caller aborted it."""
    return TokenDelta(sequence.request_id, [], sequence.finish_reason, num_cached_tokens=sequence.num_cached_tokens)
