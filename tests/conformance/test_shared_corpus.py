"""The corpus beside the checkout: every firm vector exact, every ambiguous one held, at every chunking."""

from __future__ import annotations

import pytest

from conformance.chunking import all_chunkings
from conformance.corpus import load_corpus
from conformance.corpus_run import run_corpus
from conformance.subjects import open_vector
from tests.shared_data import shared_path


@pytest.mark.shared
def test_every_vector_at_every_chunking() -> None:
    rows = run_corpus(load_corpus(shared_path("formats", "corpus")), open_vector, all_chunkings(1))
    assert [miss for row in rows for miss in row.misses] == []
    assert sum(row.num_vectors for row in rows) > 400
