"""The figures are real and the sizes hold; times are printed, not judged."""

from __future__ import annotations

import pytest

from tests.benchmarks.index import measure_index, synthetic_documents


def test_an_index_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    documents = synthetic_documents(200_000, seed=1)
    figures = measure_index(documents[:-5], documents[-5:], num_lookups=200, num_updates=20)
    with capsys.disabled():
        print("\n", figures.as_dict())  # noqa: T201  for the reader of the test's output
    assert figures.num_documents == len(documents) - 5
    assert figures.memory_bytes_per_token < 9
    assert figures.disk_bytes_per_token < 9
    assert figures.num_segments <= 8
    assert figures.tokens_per_lookup > 1


def test_synthetic_documents_are_the_same_every_time_and_of_the_size_asked_for() -> None:
    first, second = synthetic_documents(20_000), synthetic_documents(20_000)
    assert [tokens.tolist() for tokens in first] == [tokens.tolist() for tokens in second]
    assert 20_000 <= sum(map(len, first)) < 30_000
