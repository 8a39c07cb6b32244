"""A document beyond what the engine sees of it may make the visible part secret."""

from __future__ import annotations

import pytest

from lsp_server.workspace.documents import MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS, Document
from lsp_server.workspace.leave_rules import hides_secrets

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEtulip\n"
FAR = "# a line that says nothing\n" * 4000
assert len(FAR) > MAX_PREFIX_CHARS > MAX_SUFFIX_CHARS


@pytest.mark.parametrize(
    ("above", "below", "is_hidden"),
    [
        (f"{KEY}{FAR}", "", True),
        ("", f"{FAR}{KEY}", True),
        (f"kind: Secret\n{FAR}data:\n", "", True),
        ("data:\n", f"{FAR}kind: Secret\n", True),
        (FAR, FAR, False),
        (KEY, "", False),  # the engine sees it, and refuses by itself
    ],
)
def test_what_the_engine_does_not_see_keeps_a_document_here(
    above: str, below: str, *, is_hidden: bool
) -> None:
    document = Document("file:///a", "yaml", 1, f"{above}  a: dHVsaXAx\n{below}")
    snapshot = document.snapshot(above.count("\n"), 4)
    assert hides_secrets(document, snapshot) is is_hidden
