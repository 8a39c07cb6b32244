"""Answers a request for the next edit: patterns find positions, the target decides, and most answers are
empty.

Refuses edits that would break code, by syntax trees: errors, misplaced names, and the rename of another thing
or to a name that is taken or unfinished.

Owns the order of the work, its bounds and the trees of one request. Does not depend on the protocol, settings
and threads.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from completion_engine.next_edit.candidates import Candidate, find_candidates
from completion_engine.next_edit.decision import Evidence, most_promising_first, probability, threshold_of
from completion_engine.next_edit.edits import EditAnswer, EditDocument, EditRequest, LineEdit, ProposedEdit
from completion_engine.next_edit.linked_names import Outcome, Rename, RenamedThing, renamed_thing, renames_of
from completion_engine.next_edit.log_odds import Branches, BranchScorer, PlacePrompts, lines_left_out
from completion_engine.next_edit.occurrences import occurrences_of, state_of_old_name
from completion_engine.next_edit.parsing import (
    PLAIN,
    DocumentParser,
    Occurrence,
    ParsedText,
    adds_errors,
    edited,
    with_lines_around,
)
from completion_engine.next_edit.resolution import Resolver, misplaces_names
from completion_engine.next_edit.substitutions import exchanged_at, exchanged_names
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.text_window import without_surrogates

_MAX_CHANGED = 4  # documents whose hunks are read
MAX_SCORED = 4
MAX_MS = 3_000.0  # after which no further candidate is scored
_MAX_REGION_LINES = 12
_MAX_REGION_CHARS = 8_000  # characters of the old or the new text; a longer one has too many tokens
_MAX_TOKENS = 256  # tokens of the old or the new text
_MAX_REMEMBERED = 256


class Refusals:
    """Decides which edits of one request would break code."""

    def __init__(self, request: EditRequest, trees: DocumentParser) -> None:
        self._trees = trees
        self._things: dict[tuple[str, str], list[tuple[str, RenamedThing]]] = {}
        changed = {hunk.document for hunk in request.hunks}
        for document in [it for it in request.documents if it.document in changed][:_MAX_CHANGED]:
            if (parsed := trees.parsed(document)) is not None:
                self._read(request, document, parsed)

    def _read(self, request: EditRequest, document: EditDocument, parsed: ParsedText) -> None:
        rename: Rename
        for rename in renames_of(document, request.hunks, is_invoked=request.is_invoked):
            thing = renamed_thing(document, parsed, rename)
            if thing.outcome is not Outcome.UNKNOWN:
                self._things.setdefault((rename.old, rename.new), []).append((document.document, thing))

    def refuses(self, document: EditDocument, edit: LineEdit) -> bool:
        """Return whether an edit adds errors, names that mean nothing at its place, or what is refused above.

        Where a document is too large or too slow to parse, the lines around the edit are parsed.
        """
        old = self._trees.parsed(document)
        new = self._trees.parse(edited(document, edit)) if old is not None else None
        if old is None or new is None:
            part, moved = with_lines_around(document, edit)
            return adds_errors(self._trees.parse(part), self._trees.parse(edited(part, moved)))
        return (
            adds_errors(old, new)
            or misplaces_names(new, edit)
            or self._renames_another_thing(document, old, edit)
            or self._fills_another_property(document, old, edit)
        )

    def _renames_another_thing(self, document: EditDocument, parsed: ParsedText, edit: LineEdit) -> bool:
        offset = sum(len(line.encode("utf-8", "replace")) + 1 for line in document.lines[: edit.first_line])
        for names, start, _ in exchanged_at(edit):
            for where, thing in self._things.get(names, ()):
                is_own = where == document.document
                refused = _others(document, parsed, names[0], where, thing)
                if any(one.start == offset + start for one in refused):
                    return True
                here = (one for one in thing.uses if is_own and one.start == offset + start)
                if any(one.form != PLAIN for one in here):
                    return True
        return False

    def _fills_another_property(self, document: EditDocument, parsed: ParsedText, edit: LineEdit) -> bool:
        """Return whether an edit writes the new name into a short property that means another thing."""
        for (old, new), things in self._things.items():
            for where, thing in things:
                for one in _others(document, parsed, old, where, thing):
                    row, written = one.position[0] - edit.first_line, one.form.format(new)
                    is_here = one.form != PLAIN and 0 <= row < min(len(edit.old), len(edit.new))
                    if is_here and edit.new[row].count(written) > edit.old[row].count(written):
                        return True
        return False


def _others(
    document: EditDocument, parsed: ParsedText, name: str, where: str, thing: RenamedThing
) -> Iterable[Occurrence]:
    """Return the occurrences in a document that do not mean the thing which was renamed in `where`."""
    return thing.others if where == document.document else _own_names(parsed, name, thing)


def _own_names(parsed: ParsedText, name: str, thing: RenamedThing) -> Iterator[Occurrence]:
    """Yield the occurrences that their own document binds, so that they mean no thing of another one."""
    found = occurrences_of(parsed, name) or []
    keys = Resolver(parsed, found).keys(found) if found else []
    bound = {key for one, key in zip(found, keys, strict=True) if one.is_definition and one.role != "import"}
    is_member = thing.is_member
    for one, key in zip(found, keys, strict=True):
        is_alike = is_member and key is not None and key[0] == "member"
        if thing.outcome is Outcome.REFUSED or (key in bound and not is_alike):
            yield one


_ScoreKey = tuple[tuple[int, ...], Branches]


class EditProposer:
    """Proposes at most one edit for a request. Used on the engine's thread.

    Scores are remembered, so that a request that was interrupted goes on where it was.
    """

    def __init__(self, target: LanguageModel, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = min(_MAX_TOKENS, target.capacity // 8)
        room = target.capacity - 2 * self._max_tokens - target.chunks.max_pending
        self._prompts = PlacePrompts(tokenizer, room)
        self._scorer = BranchScorer(target, tokenizer)
        self._trees = DocumentParser()
        self._scores: OrderedDict[_ScoreKey, float] = OrderedDict()

    @property
    def num_cache_bytes(self) -> int:
        """Memory of the cache when it is full."""
        return self._scorer.num_cache_bytes

    def propose(self, request: EditRequest) -> EditAnswer:
        """Return the first edit that is likely enough, or none and the rule that says why.

        Raises CancelledError before the next pass once the request is cancelled.
        """
        begin_s = time.perf_counter()
        candidates = find_candidates(request)
        proposal, num_scored = None, 0
        until_s = begin_s + MAX_MS / 1e3
        for candidate, evidence in self.scored(request, candidates, until_s):
            num_scored += 1
            proposal = _decide(request, candidate, evidence)
            if proposal is not None:
                break
        return EditAnswer(
            proposal,
            "" if proposal else _reason(request, candidates),
            len(candidates),
            num_scored,
            (time.perf_counter() - begin_s) * 1e3,
        )

    def scored(
        self, request: EditRequest, candidates: Sequence[Candidate], until_s: float = math.inf
    ) -> Iterator[tuple[Candidate, Evidence]]:
        """Yield at most four candidates and the evidence for them: the most promising, the nearest first.

        None is scored after `until_s`. Raises as `propose`.
        """
        num_scored = 0
        documents = {document.document: document for document in request.documents}
        refusals = Refusals(request, self._trees) if candidates else None
        ordered = most_promising_first(candidates)
        nearest_first = sorted(ordered[:MAX_SCORED], key=lambda it: it[0].distance)
        for candidate, of_text in (*nearest_first, *ordered[MAX_SCORED:]):
            if num_scored >= MAX_SCORED or time.perf_counter() > until_s:
                return
            request.cancellation.check()
            document, edit = documents[candidate.edit.document], candidate.edit
            if refusals and refusals.refuses(document, edit):
                continue
            log_odds = self.score(request, document, edit, [one.edit for one in candidates])
            if log_odds is not None:
                num_scored += 1
                parsed = self._trees.parsed(document)
                old_name = state_of_old_name(parsed, edit, candidate.repeats)
                yield candidate, replace(of_text, log_odds=log_odds, old_name=old_name)

    def score(
        self, request: EditRequest, document: EditDocument, edit: LineEdit, others: Sequence[LineEdit] = ()
    ) -> float | None:
        """Return log p(new) - log p(old) of an edit; None where its texts are too long, or its place is.

        The prompt of a rename leaves out the lines that `others` would change.

        Raises as `propose`.
        """
        if max(len(edit.old), len(edit.new)) > _MAX_REGION_LINES:
            return None
        is_rename = bool(exchanged_names(edit))
        edit, branches = self._compared(document, edit)
        if is_rename:
            left_out = lines_left_out(request, edit, others)
            prompt = self._prompts.rename_prompt(request, document, edit, left_out)
        else:
            prompt = self._prompts.prompt(request, document, edit)
        if branches is None or prompt is None:
            return None
        key = prompt, branches
        if key not in self._scores:
            self._scores[key] = self._scorer.log_odds(prompt, branches, request.cancellation)
            if len(self._scores) > _MAX_REMEMBERED:
                self._scores.popitem(last=False)
        return self._scores[key]

    def forget(self) -> None:
        """Drop scores, caches and the last tree, and with them the texts of documents."""
        self._scores.clear()
        self._trees.forget()
        self._scorer.forget()

    def _compared(self, document: EditDocument, edit: LineEdit) -> tuple[LineEdit, Branches | None]:
        """Return an edit as it is scored, and its texts.

        Where one text is the beginning of the other, both take the next line along: it tells where they end.
        """
        branches = self._branches(edit)
        if branches is not None or edit.end_line >= len(document.lines):
            return edit, branches
        following = document.lines[edit.end_line]
        longer = replace(edit, old=(*edit.old, following), new=(*edit.new, following))
        return longer, self._branches(longer)

    def _branches(self, edit: LineEdit) -> Branches | None:
        texts = [without_surrogates("".join(f"{line}\n" for line in side)) for side in (edit.old, edit.new)]
        if max(map(len, texts)) > _MAX_REGION_CHARS:
            return None
        old, new = self._tokenizer.encode_many(texts)
        if max(len(old), len(new)) > self._max_tokens:
            return None
        try:
            return Branches.of(old, new)
        except ValueError:
            return None


def _decide(request: EditRequest, candidate: Candidate, evidence: Evidence) -> ProposedEdit | None:
    likely = probability(evidence)
    if likely < threshold_of(evidence, is_invoked=request.is_invoked):
        return None
    return ProposedEdit(candidate.edit, candidate.repeats, candidate.num_examples, evidence.log_odds, likely)


def _reason(request: EditRequest, candidates: list[Candidate]) -> str:
    if not request.hunks:
        return "no-recent-edit"
    return "edit-unlikely" if candidates else "no-similar-place"
