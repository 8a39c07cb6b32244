"""Each rename of the table, followed to its end: all that means the renamed thing, and nothing else."""

from __future__ import annotations

import pytest

from completion_engine.next_edit import proposer as proposer_module
from completion_engine.next_edit.certain_edits import certain_edit
from completion_engine.next_edit.edits import EditAnswer, EditDocument, EditRequest, Hunk
from completion_engine.next_edit.proposer import EditProposer
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.target_model.language_model import LanguageModel
from tests.completion_engine.next_edit.following import Rename, followed, renames

RENAMES = [pytest.param(it, id=f"{it.language}: {it.title}") for it in renames()]


@pytest.mark.parametrize("rename", RENAMES)
def test_a_rename_is_followed_to_its_end(rename: Rename) -> None:
    assert followed(rename.language, rename.before, rename.renamed) == rename.after


@pytest.mark.parametrize("rename", RENAMES)
def test_nothing_else_is_renamed_where_the_model_finds_every_edit_likely(
    target: LanguageModel, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, rename: Rename
) -> None:
    monkeypatch.setattr(proposer_module, "probability", lambda _: 1.0)
    proposer = EditProposer(target, tokenizer)

    def propose(request: EditRequest) -> EditAnswer | None:
        return certain_edit(request) or proposer.propose(request)

    found = followed(rename.language, rename.before, rename.renamed, propose).split("\n")
    after, widest = rename.after.split("\n"), rename.widest.split("\n")
    assert [one for at, one in enumerate(found) if one not in (after[at], widest[at])] == []


def test_a_long_rename_is_followed_to_its_end() -> None:
    uses = "".join(f"x{number} = load({number})\n" for number in range(30))
    before = f"def load(path):\n    return path\n{uses}"
    renamed = before.replace("def load", "def read")
    assert followed("python", before, renamed) == before.replace("load", "read")


@pytest.mark.parametrize(
    ("typed", "is_invoked", "is_proposed"),
    [("load_", False, False), ("load_", True, True), ("loa", False, False), ("load_json", False, True)],
)
def test_a_name_that_is_still_typed_waits_unless_the_user_asks(
    target: LanguageModel,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    typed: str,
    is_invoked: bool,
    is_proposed: bool,
) -> None:
    monkeypatch.setattr(proposer_module, "probability", lambda _: 1.0)
    lines = (f"def {typed}(path):", "    return path", "load('a.json')")
    hunk = Hunk("a", 0, ("def load(path):",), lines[:1])
    request = EditRequest([EditDocument("a", "a.py", "python", lines)], [hunk], is_invoked=is_invoked)
    answer = certain_edit(request) or EditProposer(target, tokenizer).propose(request)
    assert (answer.proposal is not None) is is_proposed
