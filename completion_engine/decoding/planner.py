"""The drafters of one completion: who is asked before a pass, what it verifies, what they learn from it.

Knows tokens and the policy; no cache and no text.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from completion_engine.drafting.draft import Allowed, Draft, Drafter, DraftToken, Pass, Remembering
from completion_engine.drafting.policy import (
    Costly,
    DraftPlan,
    SurvivalTable,
    choose,
    credited,
    judge,
    min_survival_for,
)
from completion_engine.target_model.costs import Costs
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.rows import pad_rows


@dataclass(frozen=True, slots=True)
class PassRows:
    """The rows of a verification pass: a chain of known tokens, at least one, and the plan behind the last.

    What is lent to a drafter stands behind the last row of all.
    """

    known: Sequence[int]
    plan: DraftPlan
    lent: Sequence[int]

    @property
    def num_before(self) -> int:
        """Rows before the last known token."""
        return len(self.known) - 1

    @property
    def tokens(self) -> list[int]:
        """[num_rows]."""
        return [*self.known, *(candidate.token for candidate in self.plan.rows), *self.lent]

    @property
    def parents(self) -> list[int]:
        """[num_rows], as in `LanguageModel.forward`."""
        num_known = len(self.known)
        planned = [*range(-1, num_known - 1), *(num_known + parent for parent in self.plan.parents)]
        return [*planned, *range(len(planned) - 1, len(planned) - 1 + len(self.lent))]

    @property
    def open_tokens(self) -> list[int]:
        """The last known token and all behind it: the rows whose logits are wanted."""
        return self.tokens[self.num_before :]

    @property
    def open_parents(self) -> list[int]:
        """Parents among these, -1 for the first."""
        return [parent - self.num_before for parent in self.parents[self.num_before :]]


class Planner:
    """Asks the drafters, chooses among what they propose, and tells them what the target wrote."""

    def __init__(self, drafters: Sequence[Drafter], table: SurvivalTable, num_tokens: int) -> None:
        """`num_tokens` is the target's vocabulary: a drafter may be of another one."""
        self._drafters, self._table, self._num_tokens = drafters, table, num_tokens

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        """See `Drafter.begin`."""
        for drafter in self._drafters:
            drafter.begin(prompt, cache)

    def extend(self, token: int) -> None:
        """The target wrote `token`, or is known to."""
        for drafter in self._drafters:
            drafter.extend([token])

    def end(self, may_keep: bool) -> None:
        """See `Drafter.end`; those that remember text forget this one unless `may_keep`."""
        for drafter in self._drafters:
            if may_keep or not isinstance(drafter, Remembering):
                drafter.end()
            else:
                drafter.discard()

    def plan(self, known: Sequence[int], costs: Costs, room: int, allowed: Allowed) -> PassRows:
        """The rows of the next pass, at most `room` of them drafted; the first ones are `allowed`."""
        drafts = self.cheap_drafts(room, allowed)
        plan = choose(drafts, self._table, len(known), costs)
        for drafter in self._drafters:
            min_survival = min_survival_for(plan, drafter.step_ms, self._table) if drafter.step_ms else 1.0
            if min_survival < 1.0:
                asked_at = time.perf_counter()
                drafts += self._ask(drafter, room, allowed, min_survival)
                asked = Costly(plan, (time.perf_counter() - asked_at) * 1e3)
                plan = choose(drafts, self._table, len(known), costs, asked)
        num_rows = len(known) + len(plan.rows)
        return PassRows(known, plan, self._lent(max(plan.width, pad_rows(num_rows)) - num_rows))

    def cheap_drafts(self, room: int, allowed: Allowed) -> list[Draft]:
        """Of the drafters that cost next to nothing."""
        cheap = (drafter for drafter in self._drafters if not drafter.step_ms)
        return [draft for drafter in cheap for draft in self._ask(drafter, room, allowed, 0.0)]

    def learn(self, rows: PassRows, done: Pass) -> list[DraftToken]:
        """All learn from a pass; of each drafted row that is true the guess that is credited, in order."""
        judge(rows.plan, {row - 1: done.picked[row] for row in done.path}, self._table)
        accepted = [credited(rows.plan.rows[row - 1], self._table) for row in done.path[1:]]
        for drafter in self._drafters:
            drafter.observe(done)
        return accepted

    def _ask(self, drafter: Drafter, room: int, allowed: Allowed, min_survival: float) -> list[Draft]:
        """A drafter's drafts, as far as the target can be asked."""
        usable: list[Draft] = []
        for draft in drafter.drafts(room, allowed, min_survival):
            bad = (at for at, guess in enumerate(draft) if not 0 <= guess.token < self._num_tokens)
            usable.append(draft[: next(bad, len(draft))])
        return usable

    def _lent(self, num_idle: int) -> Sequence[int]:
        """What the first drafter that wants so sees run in idle rows; every one is told how many it has."""
        lent: Sequence[int] = ()
        for drafter in self._drafters:
            wish = drafter.lend(0 if lent else num_idle)
            lent = lent or wish
        return lent
