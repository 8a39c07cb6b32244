"""The server's own figures: percentiles, the last suggestion, the latest latencies."""

from __future__ import annotations

import pytest

from completion_engine.request import CompletionStats
from lsp_server.workspace.measurements import NUM_LISTED, Answered, Measurements, percent, percentiles


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([], {"count": 0, "p50": 0.0, "p90": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}),
        ([7.0], {"count": 1, "p50": 7.0, "p90": 7.0, "p95": 7.0, "p99": 7.0, "max": 7.0}),
        (range(200), {"count": 200, "p50": 100, "p90": 180, "p95": 190, "p99": 198, "max": 199}),
    ],
)
def test_percentiles(values: list[float], found: dict[str, float]) -> None:
    assert percentiles(values) == found


@pytest.mark.parametrize(
    ("done", "total", "shown"), [(0, 0, None), (1, 3, 33), (3, 3, 100), (5, 3, 100), (0, 9, 0)]
)
def test_a_share_is_told_in_whole_percent_where_the_total_is_known(
    done: int, total: int, shown: int | None
) -> None:
    assert percent(done, total) == shown


def test_the_last_latencies_are_listed_oldest_first() -> None:
    measurements = Measurements()
    measurements.response_ms.extend(range(NUM_LISTED + 5))
    assert measurements.as_dict()["recent_response_ms"] == list(range(5, NUM_LISTED + 5))


@pytest.mark.parametrize(("num_forwards", "tokens_per_pass"), [(4, 2.5), (0, 0.0)])
def test_the_last_suggestion_tells_what_it_took(num_forwards: int, tokens_per_pass: float) -> None:
    measurements = Measurements()
    assert measurements.as_dict()["last"] is None
    stats = CompletionStats(num_tokens=29, num_written=10, num_forwards=num_forwards)
    measurements.last = Answered("7", "", "x = 1", 12.34567, stats)
    last = measurements.as_dict()["last"]
    assert (last["id"], last["text"], last["response_ms"]) == ("7", "x = 1", 12.346)
    assert (last["num_tokens"], last["num_written"], last["num_forwards"]) == (29, 10, num_forwards)
    assert last["tokens_per_pass"] == tokens_per_pass


def test_the_last_suggestion_is_told_without_a_secret_that_the_text_before_names() -> None:
    last = Answered("7", "    password = ", '"tulip"\nport = 1', 1.0, CompletionStats())
    assert last.as_dict()["text"] == '""\nport = 1'
