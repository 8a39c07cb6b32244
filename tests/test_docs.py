"""The documents match the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from completion_engine.cutting.language_names import IDENTIFIERS
from scripts import make_architecture

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for folder in (ROOT, DOCS, DOCS / "experiments", DOCS / "fleet", ROOT / ".github" / "ISSUE_TEMPLATE")
    for path in folder.glob("*.md")
)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def test_the_readme_has_at_most_a_thousand_words() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1000


def test_the_list_of_pages_names_every_page() -> None:
    listed = {target for target, _ in _LINK.findall((DOCS / "README.md").read_text(encoding="utf-8"))}
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= listed


def test_the_table_of_languages_names_every_language() -> None:
    named = set(re.findall(r"[\w-]+", (DOCS / "languages.md").read_text(encoding="utf-8")))
    assert named >= IDENTIFIERS


def test_the_picture_of_the_architecture_is_drawn_from_the_contracts_of_today() -> None:
    """`python -m scripts.make_architecture` draws it anew."""
    assert (DOCS / "architecture.svg").read_text(encoding="utf-8") == make_architecture.picture()
