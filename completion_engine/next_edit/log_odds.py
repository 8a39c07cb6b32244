"""The target's preference for a new text over an old one at the same position, and the prompt that it reads.

The preference is log p(new) - log p(old). Both texts are branches of one tree after one cached prompt, so one
pass decides. The prompt's keys and values lie in a cache of their own: no completion loses what it has
cached. The prompt shows recent edits, and the lines around the ones that an edit would replace. That of a
rename leaves out lines that other edits would change: the target continues what it sees, and would keep an
old name there. It ends with the last edit, whose lines are left out too, so that a key that changes this edit
leaves all of the prompt before it as it was. Does not depend on candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from completion_engine.decoding.loop import Decoding, DecodingSetup
from completion_engine.decoding.reuse import SlotPool
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk, LineEdit
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.repository_format import RepositoryFormat
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, CompletionStats, RepositoryContext, Snippet
from completion_engine.target_model.kv_cache import KVCache, num_common
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.text_window import without_surrogates

_MAX_TREE_ROWS = 64  # rows of one pass; longer texts are scored one after the other
_NUM_SLOTS = 3  # prompts whose keys and values are kept
_MAX_READ_AGAIN = 128  # tokens; a prompt with more new ones takes another slot
# More lines and edits separate right places from wrong ones no better; see docs/experiments/next_edit.md.
NUM_LINES_BEFORE, NUM_LINES_AFTER = 3, 2
MAX_CHARS = 600, 300  # before and after
MAX_SHOWN_HUNKS = 2
_MAX_HUNK_LINES = 12
_MAX_HUNK_CHARS = 600
MAX_HUNK_TOKENS = 120  # tokens of all shown hunks together


@dataclass(frozen=True, slots=True)
class Branches:
    """Two texts as tokens: their common beginning, and the rest of each, which is not empty."""

    shared: tuple[int, ...]
    old: tuple[int, ...]
    new: tuple[int, ...]

    @classmethod
    def of(cls, old: Sequence[int], new: Sequence[int]) -> Branches:
        """Divide two token sequences where they part. ValueError where one is the beginning of the other."""
        num_shared = num_common(old, new)
        if num_shared == min(len(old), len(new)):
            raise ValueError("one text is the beginning of the other")
        return cls(tuple(old[:num_shared]), tuple(old[num_shared:]), tuple(new[num_shared:]))

    @property
    def num_rows(self) -> int:
        """Rows of the tree, the prompt's last token included; a branch's last token needs none."""
        return len(self.shared) + len(self.old) + len(self.new) - 1


class BranchScorer:
    """Scores two texts after a prompt. Used on the engine's thread."""

    def __init__(self, target: LanguageModel, tokenizer: Tokenizer) -> None:
        self._target, self._tokenizer = target, tokenizer
        self._num_tokens = tokenizer.num_tokens
        self._slots = SlotPool(target.cache_shape, _NUM_SLOTS, _MAX_READ_AGAIN)

    def forget(self) -> None:
        """Release the caches, and what they hold of documents."""
        self._slots.clear()

    @property
    def num_cache_bytes(self) -> int:
        """Memory of the cache when it is full."""
        return self._slots.num_bytes

    def log_odds(self, prompt: Sequence[int], branches: Branches, cancellation: Cancellation) -> float:
        """Return log p(new) - log p(old) after `prompt`.

        Raises CancelledError before the next pass once the work is cancelled.
        """
        cache = self._prefilled(tuple(prompt), cancellation)
        last = prompt[-1]
        if branches.num_rows <= _MAX_TREE_ROWS and self._target.max_branches > 1:
            return self._in_a_tree(last, branches, cache)
        old, new = (
            self._in_a_chain(last, (*branches.shared, *rest), len(rest), cache, cancellation)
            for rest in (branches.old, branches.new)
        )
        return new - old

    def _prefilled(self, prompt: tuple[int, ...], cancellation: Cancellation) -> KVCache:
        """Return the cache with all of the prompt but its last token."""
        slot = self._slots.acquire("", prompt)
        setup = DecodingSetup(self._target, self._num_tokens, (), AcceptanceTable())
        written = Written(self._tokenizer, b"")
        decoding = Decoding(setup, slot, Prompt(prompt, b""), written, CompletionStats())
        cancellation.check()
        while decoding.prepare():
            cancellation.check()
        return slot.cache

    def _in_a_tree(self, last: int, branches: Branches, cache: KVCache) -> float:
        trunk = (last, *branches.shared, *branches.old[:-1])
        parting = len(branches.shared)  # the row after which the texts part
        second = branches.new[:-1]
        parents = [*range(-1, len(trunk) - 1)]
        if second:
            parents += [parting, *range(len(trunk), len(trunk) + len(second) - 1)]
        num_logits = len(trunk) + len(second) - parting
        logits = self._target.forward((*trunk, *second), cache, num_logits, parents)
        num_old = len(branches.old)
        old = self._log_probability(logits[:num_old], branches.old)
        new = self._log_probability(torch.cat([logits[:1], logits[num_old:]]), branches.new)
        return new - old

    def _in_a_chain(
        self, last: int, text: tuple[int, ...], num_scored: int, cache: KVCache, cancellation: Cancellation
    ) -> float:
        """Return the log probability of the last `num_scored` tokens of `text`; the cache stays as it was."""
        rows, begun = (last, *text[:-1]), cache.num_cached
        width = self._target.chunks.max_pending
        found: list[Tensor] = []
        for start in range(0, len(rows), width):
            cancellation.check()
            chunk = rows[start : start + width]
            found.append(self._target.forward(chunk, cache, len(chunk)))
            cache.keep(chunk)
        cache.rewind(begun)
        return self._log_probability(torch.cat(found)[-num_scored:], text[-num_scored:])

    def _log_probability(self, logits: Tensor, tokens: Sequence[int]) -> float:
        """Return the sum of the tokens' log probabilities, each computed from its own row alone."""
        total = 0.0
        for row, token in zip(logits, tokens, strict=True):
            numbers = row[: self._num_tokens].float()
            total += float(numbers[token] - torch.logsumexp(numbers, 0))
        return total


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
