"""The drafters of one completion: which are asked before a pass, what it verifies, what they learn from it.

Drafters begin at the first pass that is planned: a completion whose tokens are known already asks none. Must
not know text, except to keep what looks like a secret out of their memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from completion_engine.drafting.drafts import Allowed, Draft, Drafter, DrafterWithMemory, DraftToken, Pass
from completion_engine.drafting.ngram import NUM_REMEMBERED_BEFORE
from completion_engine.drafting.policy import (
    AcceptanceTable,
    CostlyDraftRecord,
    DraftPlan,
    choose,
    credited,
    learn_from_picks,
    min_probability_for,
)
from completion_engine.request import DraftScope
from completion_engine.target_model.costs import Costs
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.pass_rows import pad_rows
from ngram_cache.redaction import blank_secrets

_NUM_SCANNED_BEFORE = 128  # tokens that may show that the text after them is a secret


@dataclass(frozen=True, slots=True)
class PassRows:
    """The rows of a verification pass: a chain of known tokens, at least one, and the plan after the last.

    `spare` tokens, which a drafter runs in idle rows, follow the last row of all.
    """

    uncached: Sequence[int]
    plan: DraftPlan
    spare: Sequence[int]

    @property
    def num_before(self) -> int:
        """Rows before the last known token."""
        return len(self.uncached) - 1

    @property
    def tokens(self) -> list[int]:
        """[num_rows]."""
        return [*self.uncached, *(candidate.token for candidate in self.plan.rows), *self.spare]

    @property
    def parents(self) -> list[int]:
        """[num_rows], as in `LanguageModel.forward`."""
        num_uncached = len(self.uncached)
        planned = [*range(-1, num_uncached - 1), *(num_uncached + parent for parent in self.plan.parents)]
        return [*planned, *range(len(planned) - 1, len(planned) - 1 + len(self.spare))]

    @property
    def open_tokens(self) -> list[int]:
        """The last known token and all after it: the rows whose logits are wanted."""
        return self.tokens[self.num_before :]

    @property
    def open_parents(self) -> list[int]:
        """Parents by index in `open_tokens`, -1 for the first."""
        return [parent - self.num_before for parent in self.parents[self.num_before :]]


class DraftPlanner:
    """Asks the drafters of one completion, chooses among drafts, and passes on what the target wrote."""

    def __init__(
        self, drafters: Sequence[Drafter], table: AcceptanceTable, num_tokens: int, scope: DraftScope | None
    ) -> None:
        """`num_tokens` is the target's vocabulary: a drafter may have another one."""
        self._drafters, self._table, self._num_tokens = drafters, table, num_tokens
        self._scope = scope
        self._path: list[int] = []
        self._num_prompt = self._num_told = 0
        self._has_begun = False

    def begin(self, path: list[int], num_prompt: int, cache: KVCache) -> None:
        """Follow a completion whose `path` begins with the prompt and grows; `cache` is the target's."""
        self._path, self._num_prompt, self._cache = path, num_prompt, cache

    def end(self, spell: Callable[[list[int]], bytes]) -> None:
        """End the completion. Drafters that remember text forget one that holds what looks like a secret."""
        if not self._has_begun:
            return
        self._tell()
        may_keep = _holds_no_secret(self._path, self._num_prompt, spell)
        for drafter in self._drafters:
            if may_keep or not isinstance(drafter, DrafterWithMemory):
                drafter.end()
            else:
                drafter.discard()

    def plan(self, uncached: Sequence[int], costs: Costs, room: int, allowed: Allowed) -> PassRows:
        """Return the rows of the next pass, at most `room` of them drafted; the first ones are `allowed`."""
        drafts = self.cheap_drafts(room, allowed)
        plan = choose(drafts, self._table, len(uncached), costs)
        for drafter in self._drafters:
            if not drafter.step_ms:
                continue
            min_probability = min_probability_for(plan, drafter.step_ms, self._table)
            if min_probability is not None:
                asked_at = time.perf_counter()
                drafts += self._ask(drafter, room, allowed, min_probability)
                asked = CostlyDraftRecord(plan, (time.perf_counter() - asked_at) * 1e3)
                plan = choose(drafts, self._table, len(uncached), costs, asked)
        num_rows = len(uncached) + len(plan.rows)
        return PassRows(uncached, plan, self._spare(max(plan.width, pad_rows(num_rows)) - num_rows))

    def cheap_drafts(self, room: int, allowed: Allowed) -> list[Draft]:
        """Return the drafts of the drafters that cost next to nothing."""
        self._tell()
        cheap = (drafter for drafter in self._drafters if not drafter.step_ms)
        return [draft for drafter in cheap for draft in self._ask(drafter, room, allowed, 0.0)]

    def learn(self, rows: PassRows, done: Pass) -> list[DraftToken]:
        """Learn from a pass; return the guess to credit for each drafted row that is true, in order."""
        learn_from_picks(rows.plan, {row - 1: done.picked[row] for row in done.accepted_rows}, self._table)
        accepted = [credited(rows.plan.rows[row - 1], self._table) for row in done.accepted_rows[1:]]
        for drafter in self._drafters:
            drafter.observe(done)
        return accepted

    def _tell(self) -> None:
        """Begin the drafters if that is due, and pass on what was written since."""
        if not self._has_begun:
            self._has_begun, self._num_told = True, self._num_prompt
            for drafter in self._drafters:
                if self._scope is not None and isinstance(drafter, DrafterWithMemory):
                    drafter.enter(self._scope)
                drafter.begin(self._path[: self._num_prompt], self._cache)
        if new := self._path[self._num_told :]:
            self._num_told = len(self._path)
            for drafter in self._drafters:
                drafter.extend(new)

    def _ask(self, drafter: Drafter, room: int, allowed: Allowed, min_probability: float) -> list[Draft]:
        """Return a drafter's drafts, up to the first token that the target does not have."""
        usable: list[Draft] = []
        for draft in drafter.drafts(room, allowed, min_probability):
            bad = (at for at, guess in enumerate(draft) if not 0 <= guess.token < self._num_tokens)
            usable.append(draft[: next(bad, len(draft))])
        return usable

    def _spare(self, num_idle: int) -> Sequence[int]:
        """Return the tokens of the first drafter that wants spare rows; tell each drafter how many it has."""
        spare: Sequence[int] = ()
        for drafter in self._drafters:
            wish = drafter.spare_rows(0 if spare else num_idle)
            spare = spare or wish
        return spare


def _holds_no_secret(path: Sequence[int], num_prompt: int, spell: Callable[[list[int]], bytes]) -> bool:
    """Return whether redaction leaves alone what drafters remember: the completion, a little before."""
    at = max(0, num_prompt - NUM_REMEMBERED_BEFORE)
    before, kept = (
        spell(list(tokens)).decode(errors="replace")
        for tokens in (path[max(0, at - _NUM_SCANNED_BEFORE) : at], path[at:])
    )
    return blank_secrets(before + kept).endswith(kept)
