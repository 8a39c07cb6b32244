"""The prompt of a place: recent edits, and the lines around the ones that an edit would replace.

The prompt of a rename leaves out lines that other edits would change: the target continues what it sees, and
would keep an old name that still stands around the place. It ends with the last edit, whose lines are left
out too, so that a key that changes this edit leaves all of the prompt before it as it was. Does not depend on
targets and scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk, LineEdit
from completion_engine.prompting.repository_format import RepositoryFormat
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import RepositoryContext, Snippet
from completion_engine.text_window import without_surrogates

# More lines and edits separate right places from wrong ones no better; see docs/experiments/next_edit.md.
NUM_LINES_BEFORE, NUM_LINES_AFTER = 3, 2
MAX_CHARS = 600, 300  # before and after
MAX_SHOWN_HUNKS = 2
_MAX_HUNK_LINES = 12
_MAX_HUNK_CHARS = 600
MAX_HUNK_TOKENS = 120  # tokens of all shown hunks together


class PlacePrompts:
    """Builds the prompts of one target. `max_tokens` bounds one of them."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer, self._max_tokens = tokenizer, max_tokens
        self._form = RepositoryFormat(tokenizer, MAX_HUNK_TOKENS)

    def prompt(self, request: EditRequest, document: EditDocument, edit: LineEdit) -> tuple[int, ...] | None:
        """Return the tokens up to where the replaced lines begin; None where they would be too many."""
        before, after = text_around(document, edit)
        tokenizer, fim = self._tokenizer, self._tokenizer.fim
        front = self._form.tokens(self._context(request, request.hunks[-MAX_SHOWN_HUNKS:]), document.path)
        if fim is None:
            return self._bounded([*tokenizer.leading_ids, *front, *tokenizer.encode(before)])
        head, tail = tokenizer.encode_many([before, after])
        return self._bounded(
            [*tokenizer.leading_ids, *front, fim.prefix, *head, fim.suffix, *tail, fim.middle]
        )

    def rename_prompt(
        self, request: EditRequest, document: EditDocument, edit: LineEdit, left_out: Collection[int]
    ) -> tuple[int, ...] | None:
        """Return a prompt as `prompt` does, without the lines `left_out`, with the last edit at its end."""
        tokenizer, fim = self._tokenizer, self._tokenizer.fim
        hunks = request.hunks[-MAX_SHOWN_HUNKS:]
        if fim is None or not hunks:
            return self.prompt(request, document, edit)
        before, after = text_around(document, edit, left_out)
        front = self._form.tokens(self._context(request, hunks[:-1]), document.path)
        texts = [before, f"{after}\n", f"\n{_shown(hunks[-1], '').text}\n"]
        head, tail, end = tokenizer.encode_many(texts)
        return self._bounded(
            [*tokenizer.leading_ids, *front, fim.prefix, *head, fim.suffix, *tail, *end, fim.middle]
        )

    def _bounded(self, tokens: list[int]) -> tuple[int, ...] | None:
        return tuple(tokens) if 0 < len(tokens) <= self._max_tokens else None

    def _context(self, request: EditRequest, hunks: Sequence[Hunk]) -> RepositoryContext | None:
        """Return the new text of hunks, oldest first, so that a new hunk only appends."""
        paths = {document.document: document.path for document in request.documents}
        shown = [_shown(hunk, paths.get(hunk.document, "")) for hunk in hunks]
        snippets = tuple(snippet for snippet in shown if snippet.text.strip())
        return RepositoryContext(request.repository, snippets) if snippets else None


def lines_left_out(request: EditRequest, edit: LineEdit, others: Iterable[LineEdit]) -> frozenset[int]:
    """Return the lines of the edit's document that its prompt leaves out: those of the last hunk and of other
    edits, and none of its own.
    """
    ranges = [(it.first_line, it.end_line) for it in others if it.document == edit.document]
    if request.hunks and request.hunks[-1].document == edit.document:
        ranges.append((request.hunks[-1].first_line, request.hunks[-1].end_line))
    lines = {line for first, end in ranges for line in range(first, end)}
    return frozenset(lines.difference(range(edit.first_line, edit.end_line)))


def text_around(
    document: EditDocument,
    edit: LineEdit,
    left_out: Collection[int] = (),
) -> tuple[str, str]:
    """Return the lines before and after the replaced ones, as much as a prompt shows of them.

    Lines whose numbers are in `left_out` are not shown.
    """
    first = max(0, edit.first_line - NUM_LINES_BEFORE)
    end = min(len(document.lines), edit.end_line + NUM_LINES_AFTER)
    before = [document.lines[line] for line in range(first, edit.first_line) if line not in left_out]
    after = [document.lines[line] for line in range(edit.end_line, end) if line not in left_out]
    head = "".join(f"{line}\n" for line in _last_within(before, MAX_CHARS[0]))
    tail = "\n".join(reversed(_last_within(after[::-1], MAX_CHARS[1])))
    return without_surrogates(head), without_surrogates(tail)


def _last_within(lines: Sequence[str], max_chars: int) -> list[str]:
    """Return the last lines that have at most `max_chars` together."""
    kept: list[str] = []
    for line in reversed(lines):
        max_chars -= len(line) + 1
        if max_chars < 0:
            break
        kept.append(line)
    return kept[::-1]


def _shown(hunk: Hunk, path: str) -> Snippet:
    text = "\n".join(hunk.new[:_MAX_HUNK_LINES])[:_MAX_HUNK_CHARS]
    return Snippet(path, without_surrogates(text))
