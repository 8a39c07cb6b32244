"""Confidence of a text: the target's own probabilities, and the end of an uncertain text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.units import longest_likely
from completion_engine.decoding.ending import NoRules
from completion_engine.decoding.picking import OpenRows, Picker, RepositoryBias
from completion_engine.engine import CompletionEngine
from completion_engine.probability import SHIPPED, TokenProbability
from completion_engine.prompting.prompt import HealingConstraint
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.text_window import CursorContext
from ngram_cache import NgramIndex
from tests.benchmarks.quality.text_probabilities import probabilities_of, token_probabilities
from tests.completion_engine.decoding.mixture import mixed

Make = Callable[..., CompletionEngine]
HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"
TEXTS = [HEAD, HEAD * 3, HEAD * 3 + "        res", HEAD + "        result.append(argument)\n    ret"]
EAGERNESSES = [0.05, 0.6, 0.9, 0.97, 0.999]


def request(prefix: str, eagerness: float, **options: object) -> CompletionRequest:
    options = {"deadline_ms": 0.0, "max_tokens": 24, **options}
    return CompletionRequest(prefix, "\n", "python", "a.py", eagerness=eagerness, **options)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), healed=st.sampled_from([b"", b"re", b"    "]), is_mixed=st.booleans())
def test_a_probability_is_the_share_of_all_that_may_be_written(
    tokenizer: Tokenizer, seed: int, healed: bytes, is_mixed: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(1, tokenizer.num_tokens, generator=generator)
    seen = torch.randint(0, tokenizer.num_tokens, (20,), generator=generator).tolist()
    index = NgramIndex((str(at), [1, 2, 3, token]) for at, token in enumerate(seen))
    bias = RepositoryBias(index.view(), tokenizer.num_tokens)
    bound = HealingConstraint(tokenizer, healed)
    picker = Picker(tokenizer.num_tokens, bias if is_mixed else None)
    picks = picker.pick(OpenRows([1, 2, 3], [3], [-1], bound), logits)
    row = mixed(bias, logits[0], [1, 2, 3]) if is_mixed else logits[0]
    allowed = bound.candidates() if healed else list(range(tokenizer.num_tokens))
    shares = dict(zip(allowed, torch.softmax(row[allowed], -1).tolist(), strict=True))
    (probability,) = picks.probabilities
    assert probability.value == pytest.approx(shares[picks.tokens[0]], rel=1e-4)
    assert all(share == pytest.approx(shares[token], rel=1e-4) for token, share in probability.rivals)


@pytest.mark.parametrize("typed", ["", "    re"])
def test_the_shares_of_what_was_written_are_its_probabilities_and_asking_leaves_it_as_it_was(
    make_engine: Make, typed: str
) -> None:
    engine = make_engine()
    asked = request(HEAD + typed, 0.9)
    written = engine.write(asked, NoRules(), 6)
    text = written.written.text
    shares = probabilities_of(written, text)
    tokens = written.written.tokens_of(text)
    same = [a == b for a, b in zip(tokens, written.tokens, strict=False)]
    num_same = (*same, False).index(False)
    # else nothing is compared; otherwise nothing is compared; the last one may have a line end
    assert num_same
    for share, probability in zip(shares[: len(shares) - 1][:num_same], written.probabilities, strict=False):
        assert share == pytest.approx(probability.value, rel=1e-3)
    assert engine.write(asked, NoRules(), 6).written.text == text


@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_last_token_may_be_written_with_its_line_end(tokenizer: Tokenizer, is_mixed: bool) -> None:
    one, two = tokenizer.encode(":"), tokenizer.encode(":\n")
    logits = torch.zeros(1, tokenizer.num_tokens)
    bias = RepositoryBias(NgramIndex([("a", [1, 2, 3, *two])]).view(), tokenizer.num_tokens)
    picker = Picker(tokenizer.num_tokens, bias if is_mixed else None)
    unbound = HealingConstraint(tokenizer, b"")
    (share,) = token_probabilities(picker, [1, 2, 3], one, unbound, logits)
    num_meant = sum(
        spelt in (b":", b":\n")
        for spelt in map(tokenizer.spell, ([at] for at in range(tokenizer.num_tokens)))
    )
    assert share >= num_meant / tokenizer.num_tokens - 1e-6
    assert is_mixed or share == pytest.approx(num_meant / tokenizer.num_tokens, rel=1e-3)


def test_what_is_typed_rules_out_rivals() -> None:
    probability = TokenProbability(0.3, ((5, 0.4), (6, 0.1), (7, 0.2)))
    narrowed = probability.among(lambda token: token == 6)
    assert narrowed.value == pytest.approx(0.75)
    assert narrowed.rivals == ((6, pytest.approx(0.25)),)
    assert probability.among(lambda token: False).value == 1.0


def test_more_likely_tokens_are_right_more_often() -> None:
    shares = [0.0, 0.01, 0.2, 0.5, 0.8, 0.99, 1.0]
    found = [SHIPPED.of(share) for share in shares]
    assert found == sorted(found)
    assert 0 < found[0] < found[-1] < 1


@pytest.mark.parametrize("eagerness", EAGERNESSES)
def test_drafts_change_nothing_about_where_a_text_ends(make_engine: Make, eagerness: float) -> None:
    plain, drafted = make_engine(drafters=()), make_engine()
    for text in [*TEXTS, *TEXTS]:  # the second time everything is drafted
        found = drafted.complete(request(text, eagerness))
        expected = plain.complete(request(text, eagerness))
        assert (found.text, found.rule) == (expected.text, expected.rule)


def test_drafts_change_nothing_about_where_a_name_is_unknown(make_engine: Make) -> None:
    plain, drafted = make_engine(drafters=()), make_engine()
    index = NgramIndex([("b.py", drafted.tokenizer.encode(HEAD * 250))])
    rules = set()
    for text in [*TEXTS, *TEXTS]:
        asked = request(text, 0.995, index=index, repository_memory="off")
        found, expected = drafted.complete(asked), plain.complete(asked)
        assert (found.text, found.rule) == (expected.text, expected.rule)
        assert found.forecast == expected.forecast
        rules.add(found.rule)
        known = drafted.complete(request(text, 0.995))
        assert known.text.startswith(found.text)
    assert "unknown-name" in rules


@pytest.mark.parametrize("text", TEXTS)
def test_less_eager_shows_a_head_of_all(make_engine: Make, text: str) -> None:
    shown = [make_engine().complete(request(text, eagerness)) for eagerness in (0.0, *EAGERNESSES, 1.0)]
    whole = shown[-1].text
    assert all(whole.startswith(less.text) or less.text.startswith(whole) for less in shown)
    assert (shown[0].text, shown[0].rule) == ("", "unsure")

    assert shown[-1].rule != "unsure"


@pytest.mark.parametrize("eagerness", [0.05, 0.6, 0.97])
def test_what_nobody_weighed_is_scored_before_it_counts_as_sure(make_engine: Make, eagerness: float) -> None:
    """An explicit request gets a whole text; typing afterwards never shows more of it than allowed."""
    for text in TEXTS:
        engine, unasked = make_engine(), make_engine()
        whole = engine.complete(request(text, 1.0)).text
        while engine.idle(Cancellation()):
            pass
        for typed in ("", whole[:1], whole[:3]):
            found, expected = (one.complete(request(text + typed, eagerness)) for one in (engine, unasked))
            assert (found.text, found.rule, found.forecast) == (
                expected.text,
                expected.rule,
                expected.forecast,
            )
            assert found.forecast.is_scored


def test_an_unsure_text_is_written_whole_while_nothing_else_is_to_do(make_engine: Make) -> None:
    engine = make_engine()
    whole = make_engine().complete(request(HEAD, 1.0)).text
    assert not engine.complete(request(HEAD, 0.0)).text
    while engine.idle(Cancellation()):
        pass
    again = engine.complete(request(HEAD, 1.0))
    assert (again.text, again.stats.num_forwards) == (whole, 0)


@pytest.mark.parametrize(
    "marked",
    [
        "first| sec#ond",
        "first| #second",
        "first#| second",
        "call#|(value",
        "call|(#value",
        "call(value)|#",
        "|val#ue",
        "value = 1#|\nother = 2",
        "value = 1|\noth#er = 2",
    ],
)
def test_a_head_ends_where_a_reader_would_end_it(marked: str) -> None:
    """`#` is where the sure part ends, `|` where the text is cut."""
    text = marked.replace("#", "").replace("|", "")
    units = Cutter(CursorContext("x = 1\n", "\n", "python")).units(text)
    ends = [marked.replace("|", "").index("#"), len(text)]
    assert longest_likely(units, ends, [0.9, 0.1], 0.4) == marked.replace("#", "").index("|")
