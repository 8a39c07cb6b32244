"""The prompt of a place: recent edits in front, then the lines around the ones that an edit would replace.

Does not depend on targets and scores.
"""

from __future__ import annotations

from collections.abc import Sequence

from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk, LineEdit
from completion_engine.prompting.prompt import RepositoryFormat
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import RepositoryContext, Snippet
from completion_engine.text_window import without_surrogates

NUM_LINES_BEFORE, NUM_LINES_AFTER = 25, 15
MAX_CHARS_BEFORE, MAX_CHARS_AFTER = 2_400, 1_200
MAX_SHOWN_HUNKS = 6
_MAX_HUNK_LINES = 12
_MAX_HUNK_CHARS = 600
MAX_HUNK_TOKENS = 320  # tokens of all shown hunks together


class PlacePrompts:
    """Builds the prompts of one target. `max_tokens` bounds one of them."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer, self._max_tokens = tokenizer, max_tokens
        self._form = RepositoryFormat(tokenizer, MAX_HUNK_TOKENS)

    def prompt(self, request: EditRequest, document: EditDocument, edit: LineEdit) -> tuple[int, ...] | None:
        """Return the tokens up to where the replaced lines begin; None where they would be too many."""
        before, after = text_around(document, edit)
        tokenizer, fim = self._tokenizer, self._tokenizer.fim
        front = self._form.tokens(self._context(request), document.path)
        if fim is None:
            tokens = [*tokenizer.leading_ids, *front, *tokenizer.encode(before)]
        else:
            head, tail = tokenizer.encode_many([before, after])
            tokens = [*tokenizer.leading_ids, *front, fim.prefix, *head, fim.suffix, *tail, fim.middle]
        return tuple(tokens) if 0 < len(tokens) <= self._max_tokens else None

    def _context(self, request: EditRequest) -> RepositoryContext | None:
        """Return the new text of the last hunks, oldest first, so that a new hunk only appends."""
        paths = {document.document: document.path for document in request.documents}
        shown = [_shown(hunk, paths.get(hunk.document, "")) for hunk in request.hunks[-MAX_SHOWN_HUNKS:]]
        snippets = tuple(snippet for snippet in shown if snippet.text.strip())
        return RepositoryContext(request.repository, snippets) if snippets else None


def text_around(document: EditDocument, edit: LineEdit) -> tuple[str, str]:
    """Return the lines before and after the replaced ones, as much as a prompt shows of them."""
    before = document.lines[max(0, edit.first_line - NUM_LINES_BEFORE) : edit.first_line]
    after = document.lines[edit.end_line : edit.end_line + NUM_LINES_AFTER]
    head = "".join(f"{line}\n" for line in _last_within(before, MAX_CHARS_BEFORE))
    tail = "\n".join(reversed(_last_within(after[::-1], MAX_CHARS_AFTER)))
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
