"""The scripted typist: whatever is suggested and taken, the file comes out as it shall be."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.scripted_typing.screen import Buffer, ShownSuggestion
from lsp_server.scripted_typing.typing_plan import bracket_pairs, line_start, plan_typing
from lsp_server.scripted_typing.typist import Typist
from lsp_server.workspace.documents import PositionEncoding
from tests.faultless_typist import type_until

CODE = '''import os


def total(values):
    """Sum of it, "größer 😀"."""
    result = compute(
        values,
        {"key": [1, 2, (3)]},
    )
    return max(result, key=lambda item: item[0])


class Thing:
    name = ")("

    def describe(self): return f"{self.name}"
'''

texts = st.one_of(
    st.just(CODE),
    st.text(alphabet="ab ([{}])\n\t\"'é😀xyzword_", max_size=120),
)


def apply(text: str, change: dict, encoding: PositionEncoding) -> str:
    """A server's result of a content change; written apart from Buffer on purpose."""
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding]
    lines = text.split("\n")

    def offset(place: dict) -> int:
        line = lines[place["line"]].encode(codec)[: place["character"] * width].decode(codec)
        return len("\n".join(lines[: place["line"]])) + (place["line"] > 0) + len(line)

    start, end = offset(change["range"]["start"]), offset(change["range"]["end"])
    return text[:start] + change["text"] + text[end:]


def suggestion(rng: random.Random, typist: Typist) -> ShownSuggestion:
    """Right, half right and wrong suggestions, with and without the brackets that are there already."""
    wanted = typist.plan.text[typist.offset : typist.offset + rng.randint(0, 40)]
    if rng.random() < 0.4:
        wanted = wanted[: rng.randint(0, len(wanted))] + "wrong words"
    return ShownSuggestion(wanted, rng.choice([0, 0, 1, 2]))


@given(texts, st.integers(0, 1000), st.sampled_from(["utf-8", "utf-16", "utf-32"]), st.data())
def test_the_typed_file_is_the_file_whatever_is_suggested(
    text: str, seed: int, encoding: PositionEncoding, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    rng = random.Random(seed)  # noqa: S311 - reproducible suggestions, no secret
    typist = Typist.at_start(plan_typing(text, start=start, end=end, seed=seed), encoding)
    seen = typist.buffer.text
    while typist.next_stroke:
        shown = suggestion(rng, typist)
        taken = typist.consider(shown)
        change = typist.accept(taken) if taken else typist.press()
        seen = apply(seen, change, encoding) if change else seen
        assert seen == typist.buffer.text
        typist.check_integrity()
    assert typist.buffer.text == text
    assert typist.offset == end


@given(texts, st.integers(0, 100))
def test_the_same_seed_types_the_same_and_every_stroke_counts(text: str, seed: int) -> None:
    plan = plan_typing(text, start=0, end=len(text), seed=seed)
    assert plan == plan_typing(text, start=0, end=len(text), seed=seed)
    assert sum(s.kind == "typo" for s in plan.strokes) <= sum(s.kind == "erase" for s in plan.strokes)


def test_people_mistype_and_reconsider() -> None:
    plan = plan_typing(CODE * 20, start=0, end=len(CODE) * 20, seed=1)
    assert {stroke.kind for stroke in plan.strokes} == {"type", "typo", "erase"}
    assert any(s.kind == "erase" and s.after < s.before for s in plan.strokes)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("f(a[1])", {1: 6, 3: 5}),
        ("f(", {}),
        (")(", {}),
        ("([)]", {}),
        ("(" + "x" * 3000 + ")", {}),
    ],
)
def test_only_well_nested_near_brackets_are_paired(text: str, pairs: dict[int, int]) -> None:
    assert bracket_pairs(text, 0, len(text)) == pairs


@pytest.mark.parametrize(
    ("text", "offset", "buffer"),
    [
        ("f(a)", 2, ("f(", ")")),
        ("f(a)", 4, ("f(a)", "")),
        ("f({})", 3, ("f({", "})")),
        ("f(\n  a,\n)", 3, ("f(\n  ", "\n)")),
        ("f(\n  a,\n)", 7, ("f(\n  a,", "\n)")),
        ("f(\n  a)", 3, ("f(\n  ", ")")),
    ],
)
def test_brackets_are_closed_as_editors_do(text: str, offset: int, buffer: tuple[str, str]) -> None:
    typist = type_until(text, offset)
    assert (typist.buffer.left, typist.buffer.right) == buffer


CALL = "result = total(values)\nreturn result"


@pytest.mark.parametrize(
    ("typed", "shown", "taken"),
    [
        ("result", ShownSuggestion(" = total(values)", 0), ("full", " = total(values)")),
        ("result", ShownSuggestion(" = total(other)", 0), ("word", " = total")),
        ("result", ShownSuggestion(" + total(values)", 0), None),
        ("result = total(", ShownSuggestion("values)", 1), ("full", "values)")),
        ("result = total(", ShownSuggestion("values)", 0), ("word", "values")),
        ("result = total(", ShownSuggestion("values", 0), ("full", "values")),
        ("result = total(", ShownSuggestion("value", 0), ("full", "value")),
        ("result = total(valu", ShownSuggestion("es", 0), None),
        ("result", ShownSuggestion("", 0), None),
    ],
)
def test_what_spares_enough_typing_is_taken(
    typed: str, shown: ShownSuggestion, taken: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_server.scripted_typing.typist.FULL_EAGERNESS", 1.0)
    monkeypatch.setattr("lsp_server.scripted_typing.typist.WORD_EAGERNESS", 1.0)
    decision = type_until(CALL, len(typed)).consider(shown)
    assert (decision and (decision.how, decision.text)) == taken


@given(texts, st.sampled_from(["utf-8", "utf-16", "utf-32"]), st.data())
def test_positions_and_offsets_are_inverse(
    text: str, encoding: PositionEncoding, data: st.DataObject
) -> None:
    offset = data.draw(st.integers(0, len(text)))
    buffer = Buffer(text[:offset], text[offset:], encoding)
    assert buffer.offset_of(buffer.position) == offset


@pytest.mark.parametrize(("line", "offset"), [(0, 0), (1, 2), (2, 3), (3, 5), (9, 5)])
def test_line_starts(line: int, offset: int) -> None:
    assert line_start("a\n\nb\n", line) == offset
