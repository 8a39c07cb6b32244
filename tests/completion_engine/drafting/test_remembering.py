"""The memory of drafters serves its own scope alone, and holds no secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from completion_engine.decoding.planner import _holds_no_secret
from completion_engine.drafting.drafts import DraftScope
from completion_engine.drafting.ngram import NgramDrafter, RecentText
from completion_engine.target_model.kv_cache import KVCache
from ngram_cache import NgramIndex

_NO_CACHE = cast(KVCache, None)
_PROMPT, _WRITTEN = (3, 4, 5), (6, 7, 8)


def write(drafter: NgramDrafter) -> None:
    """A completion of `_WRITTEN` after `_PROMPT`."""
    drafter.begin(_PROMPT, _NO_CACHE)
    drafter.extend(_WRITTEN)
    drafter.end()


def drafted(drafter: NgramDrafter, prompt: Sequence[int] = _PROMPT) -> bool:
    """Whether the earlier text is drafted after the same tokens."""
    drafter.begin(prompt, _NO_CACHE)
    drafts = drafter.drafts(8, lambda _: True, 0.0)
    return any(guess.token == _WRITTEN[0] for draft in drafts for guess in draft)


@pytest.fixture
def drafter() -> NgramDrafter:
    made = NgramDrafter()
    made.enter(DraftScope("folder", "a.py"))
    return made


def test_a_scope_drafts_from_what_its_documents_wrote(drafter: NgramDrafter) -> None:
    write(drafter)
    drafter.enter(DraftScope("folder", "b.py"))
    assert drafted(drafter)


def test_another_window_or_folder_drafts_nothing_of_it(drafter: NgramDrafter) -> None:
    write(drafter)
    drafter.enter(DraftScope("other folder", "b.py"))
    assert not drafted(drafter)
    drafter.enter(DraftScope("folder", "a.py"))
    assert drafted(drafter)


def test_what_did_not_end_is_never_drafted(drafter: NgramDrafter) -> None:
    drafter.begin(_PROMPT, _NO_CACHE)
    drafter.extend(_WRITTEN)
    assert not drafted(drafter)


def test_a_document_of_its_own_scope_leaves_nothing_behind(drafter: NgramDrafter) -> None:
    drafter.enter(DraftScope("a.py", "a.py"))
    write(drafter)
    drafter.forget("a.py")
    drafter.enter(DraftScope("a.py", "a.py"))
    assert not drafted(drafter)


def test_nothing_is_drafted_from_the_index_of_a_closed_document() -> None:
    drafter = NgramDrafter()
    drafter.enter(DraftScope("folder", "a.py", NgramIndex([("lib.py", [*_PROMPT, *_WRITTEN])])))
    drafter.forget("b.py")
    assert drafted(drafter)
    drafter.forget("a.py")
    assert drafter._scope.index is None
    assert not drafted(drafter)


def test_recent_text_goes_with_its_document_and_no_other() -> None:
    recent = RecentText()
    recent.add("folder", "a.py", [1, 2, 3])
    recent.add("folder", "b.py", [4, 5])
    recent.forget("a.py")
    assert recent.of("folder").tokens.tolist() == [4, 5]


def test_recent_text_is_bounded() -> None:
    recent = RecentText()
    for number in range(2000):
        recent.add("folder", "a.py", range(20))
        recent.add(f"scope {number}", "a.py", [1])
    assert len(recent.of("folder")) <= 8192
    assert len(recent._scopes) <= 32


@pytest.mark.parametrize(
    ("prompt", "written", "is_kept"),
    [
        ("password = ", '"tulip"', False),
        ("password = '", "tul", False),
        ("# a\n" * 8, "key = 'AKIA" + "QWERTYUIOP234567'", False),
        ("password = 'tulip'\n" + "x = 1\n" * 20, "y = 2", True),
        ("def add(a, b):\n", "    return a + b", True),
    ],
)
def test_text_with_a_secret_is_not_kept(prompt: str, written: str, *, is_kept: bool) -> None:
    path = [*prompt.encode(), *written.encode()]
    assert _holds_no_secret(path, len(prompt), bytes) is is_kept
