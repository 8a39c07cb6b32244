"""Follows a rename to its end: accepts each proposal, as a user who presses Tab does, until there is none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from completion_engine.next_edit.certain_edits import certain_edit
from completion_engine.next_edit.edits import EditAnswer, EditDocument, EditRequest, LineEdit
from lsp_server.workspace.documents import LineChange
from lsp_server.workspace.edit_log import EditLog

Propose = Callable[[EditRequest], EditAnswer | None]

_MARK = re.compile(r"\[\[(\w+)]]|\{\{([\w:]+)(?:\|([^}]*))?}}|\(\((\w+)\)\)")
_MAX_STEPS = 200


@dataclass(frozen=True, slots=True)
class Rename:
    """A text before a rename, after the user's own change of one line, and after all places that follow."""

    language: str
    title: str
    names: tuple[str, str]
    before: str
    renamed: str
    after: str
    widest: str


def renames() -> list[Rename]:
    """Return the cases of `renames.txt`."""
    parts = re.split(r"^=== (.*)\n", Path(__file__).with_name("renames.txt").read_text("utf-8"), flags=re.M)[
        1:
    ]
    return [_case(head, body) for head, body in zip(parts[::2], parts[1::2], strict=True)]


def _case(head: str, body: str) -> Rename:
    language, title, names = head.split(": ")
    old, new = names.split()

    def text(is_renamed: bool, is_followed: bool, is_wide: bool) -> str:
        def put(mark: re.Match[str]) -> str:
            own, use, form, maybe = mark.groups()
            if own:
                return new if is_renamed else own
            if use:
                return (form or new) if is_followed else use
            return new if is_wide else maybe

        return _MARK.sub(put, body)

    texts = (
        text(False, False, False),
        text(True, False, False),
        text(True, True, False),
        text(True, True, True),
    )
    return Rename(language, title, (old, new), *texts)


def followed(language: str, before: str, renamed: str, propose: Propose = certain_edit) -> str:
    """Return a text once all proposals were accepted after the user changed it."""
    log, lines = EditLog(), tuple(before.split("\n"))
    log.allow("a")
    first = tuple(renamed.split("\n"))
    line = next(at for at, (one, other) in enumerate(zip(lines, first, strict=True)) if one != other)
    log.changed("a", LineChange(line, (lines[line],), (first[line],)), 0.0)
    lines = first
    for step in range(_MAX_STEPS):
        document = EditDocument("a", "a", language, lines)
        answer = propose(EditRequest([document], log.hunks(), line))
        if answer is None or answer.proposal is None:
            return "\n".join(lines)
        edit = answer.proposal.edit
        log.changed("a", LineChange(edit.first_line, edit.old, edit.new), 1.0 + step)
        lines, line = applied(lines, edit), edit.first_line
    raise AssertionError("the proposals do not end")


def applied(lines: tuple[str, ...], edit: LineEdit) -> tuple[str, ...]:
    """Return lines after an edit."""
    assert lines[edit.first_line : edit.end_line] == edit.old
    return (*lines[: edit.first_line], *edit.new, *lines[edit.end_line :])
