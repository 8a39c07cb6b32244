"""Where secrets stand in a whole text, to the character, also those that are seen once others are gone."""

from __future__ import annotations

import pytest

from ngram_cache.redaction import Span, blank_parts, blank_secrets, secret_spans
from ngram_cache.redaction.rule import merged, restored, without

KEY = "qZ1tK2fW3pL4xR5vB6nM7cH8jG9dS0yT"
ENTRIES = "  a: ZHVs\n\n" * 600 + f"  b: {'A' * 6000}\n  c: ZHVs\n"
HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("spans", "joined"),
    [
        ([], []),
        ([(3, 4), (0, 1)], [(0, 1), (3, 4)]),
        ([(0, 2), (2, 4)], [(0, 4)]),
        ([(0, 9), (2, 4), (9, 10)], [(0, 10)]),
    ],
)
def test_spans_that_meet_are_one(spans: list[Span], joined: list[Span]) -> None:
    assert merged(spans) == joined


@pytest.mark.parametrize(
    ("lost", "found", "spans"),
    [
        pytest.param([], [], [], id="nothing"),
        pytest.param([], [(2, 3)], [(2, 3)], id="nothing is gone"),
        pytest.param([(2, 3)], [], [(2, 3)], id="nothing is found"),
        pytest.param([(0, 2)], [(0, 1)], [(0, 3)], id="behind what is gone"),
        pytest.param([(4, 5)], [(0, 1)], [(0, 1), (4, 5)], id="before it"),
        pytest.param([(2, 4)], [(1, 3)], [(1, 5)], id="on both sides of it"),
        pytest.param([(1, 2), (3, 4)], [(3, 4)], [(1, 2), (3, 4), (5, 6)], id="behind two"),
        pytest.param([(2, 8)], [(5, 6)], [(2, 8), (9, 10)], id="behind line ends, which stay"),
    ],
)
def test_what_is_found_in_the_rest_of_a_text_is_found_in_the_text(
    lost: list[Span], found: list[Span], spans: list[Span]
) -> None:
    text = "abcde\n\nfgh\ni"
    assert restored(text, lost, found) == spans
    left = without(without(text, lost), found)
    assert without(text, spans) == left


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("value = compute(first)", []),
        (f'a = "{KEY}"; b = "{KEY}"', [KEY, KEY]),
        (f"password = 'tulip'\nx = {KEY}.host", ["tulip", KEY]),
        (f"at host/commit/{HASH}.{KEY}", [KEY]),
        ("kind: Secret\ndata:\n  a: dHVsaXAx\n  b: dHVsaXAx\nmore: 1", ["\n  a: dHVsaXAx\n  b: dHVsaXAx"]),
        ("a=" + "b" * 3000 + " c", ["a=" + "b" * 3000]),
        ("kind: Secret\ndata:\n  a: ZHVs\n\n  b: ZHVs\nmore: 1", ["\n  a: ZHVs\n\n  b: ZHVs"]),
        ("kind: Secret\r\ndata:\r\n  a: ZHVs\r\n\r\n  b: ZHVs\r\nc: 1", ["\n  a: ZHVs\r\n\r\n  b: ZHVs\r"]),
        (f"stringData:\n{ENTRIES}type: Opaque", [f"\n{ENTRIES.rstrip()}"]),
        ("x: 1\ndata:\n  a: ZHVs\nkind: Secret\n", ["\n  a: ZHVs"]),
        ("x: 1\ndata:\n  a: ZHVs\nimmutable: true\nkind: 'Secret'\n", ["\n  a: ZHVs"]),
        ("x: 1\ndata:\n  a: ZHVs\nkind: ConfigMap\n", []),
    ],
)
def test_where_secrets_stand(text: str, secrets: list[str]) -> None:
    assert [text[start:end] for start, end in secret_spans(text)] == secrets


NOTE = "# a line that says nothing\n"


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        (("password = ", '"tulip"', "\n"), ["password = ", '""', "\n"]),
        (('password = "tu', "lip", '"\n'), ['password = "', "", '"\n']),
        (("x = ", "1", "\n"), ["x = ", "1", "\n"]),
        (("AKIAIOSF", "ODNN7EXAMPLX"), ["", ""]),
    ],
)
def test_a_part_of_a_text_is_redacted_by_what_the_others_show(
    parts: tuple[str, ...], left: list[str]
) -> None:
    assert blank_parts(*parts) == left


@pytest.mark.parametrize("is_above", [True, False])
@pytest.mark.parametrize("num_lines", [0, 10, 3000])
def test_a_secret_of_kubernetes_is_one_however_far_its_kind_stands(num_lines: int, *, is_above: bool) -> None:
    data = "data:\n" + "".join(f"  value{number}: dHVsaXAx{number}\n" for number in range(200))
    kind, notes = "kind: Secret\n", NOTE * num_lines
    left = blank_secrets(f"{kind}{notes}{data}" if is_above else f"{data}{notes}{kind}")
    assert "dHVsaXAx" not in left
    assert left.count(NOTE) == num_lines


def test_the_values_of_other_manifests_stay() -> None:
    other = "kind: ConfigMap\ndata:\n  colour: yellow\n"
    text = f"{other}---\nkind: Secret\ndata:\n  a: dHVsaXAx\n---\n{other}"
    left = blank_secrets(text)
    assert left.count("colour: yellow") == 2
    assert "dHVsaXAx" not in left
