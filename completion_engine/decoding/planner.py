"""The drafters of one completion: requests drafts before each pass, chooses what to verify, lets them learn.

Text is read only to find secrets, which drafters must not store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from completion_engine.drafting.drafts import Allowed, Draft, Drafter, DraftScope, DraftToken
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
from completion_engine.probability import TokenProbability
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.passes import Costs
from ngram_cache.redaction import blank_secrets

_NUM_SCANNED_BEFORE = 128  # tokens of context in which redaction recognises a secret


@dataclass(frozen=True, slots=True)
class PassRows:
    """The rows of a verification pass: a chain of uncached tokens, at least one, then the draft after it."""

    uncached: Sequence[int]
    plan: DraftPlan

    @property
    def num_before(self) -> int:
        """Number of rows before the last uncached token."""
        return len(self.uncached) - 1

    @property
    def tokens(self) -> list[int]:
        """The token of each row [num_rows]."""
        return [*self.uncached, *(candidate.token for candidate in self.plan.rows)]

    @property
    def parents(self) -> list[int]:
        """The parent of each row [num_rows], as in `LanguageModel.forward`."""
        num_uncached = len(self.uncached)
        return [*range(-1, num_uncached - 1), *(num_uncached + parent for parent in self.plan.parents)]

    @property
    def open_tokens(self) -> list[int]:
        """The tokens of the rows whose logits are needed: the last uncached token and all rows after it."""
        return self.tokens[self.num_before :]

    @property
    def open_parents(self) -> list[int]:
        """The parents of these rows, as indices in `open_tokens`; -1 for the first."""
        return [parent - self.num_before for parent in self.parents[self.num_before :]]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification pass found: the target's token after each row that it `picked`, and their use.

    Row 0 is the last uncached token. `accepted_rows` lists it and the accepted draft rows after it, in order;
    `probabilities` are those of the picks after them.
    """

    picked: Sequence[int]
    accepted_rows: tuple[int, ...]
    probabilities: Sequence[TokenProbability]


class DraftPlanner:
    """Collects drafts for one completion, chooses what to verify, and updates the drafters."""

    def __init__(
        self, drafters: Sequence[Drafter], table: AcceptanceTable, num_tokens: int, path: list[int]
    ) -> None:
        """Follow a completion whose `path` grows.

        `num_tokens` is the size of the target's vocabulary without the padding of its logits. Drafts are cut
        before ids beyond it: stored logits may rank a padding id.
        """
        self._drafters, self._table, self._num_tokens = drafters, table, num_tokens
        self._path = path
        self._num_prompt = self._num_given = 0

    def begin(self, num_prompt: int, cache: KVCache, scope: DraftScope | None) -> None:
        """Begin the drafters after the prompt, the first `num_prompt` tokens; `cache` is the target's."""
        self._num_prompt = self._num_given = num_prompt
        for drafter in self._drafters:
            if scope is not None:
                drafter.enter(scope)
            drafter.begin(self._path[:num_prompt], cache)

    def end(self, spell: Callable[[list[int]], bytes]) -> None:
        """End the completion. Drafters store nothing of it if it seems to contain a secret."""
        self._extend_drafters()
        if _holds_no_secret(self._path, self._num_prompt, spell):
            for drafter in self._drafters:
                drafter.end()

    def plan(self, uncached: Sequence[int], costs: Costs, max_rows: int, allowed: Allowed) -> PassRows:
        """Return the rows of the next pass: at most `max_rows` are drafted, with `allowed` first tokens."""
        self._extend_drafters()
        cheap = [drafter for drafter in self._drafters if not drafter.step_ms]
        drafts = [draft for drafter in cheap for draft in self._ask(drafter, max_rows, allowed, 0.0)]
        plan = choose(drafts, self._table, len(uncached), costs)
        for drafter in self._drafters:
            if not drafter.step_ms:
                continue
            min_probability = min_probability_for(plan, drafter.step_ms, self._table)
            if min_probability is not None:
                asked_at = time.perf_counter()
                drafts += self._ask(drafter, max_rows, allowed, min_probability)
                asked = CostlyDraftRecord(plan, (time.perf_counter() - asked_at) * 1e3)
                plan = choose(drafts, self._table, len(uncached), costs, asked)
        return PassRows(uncached, plan)

    def learn(self, rows: PassRows, done: Verified) -> list[DraftToken]:
        """Learn from a pass; return the guess to credit for each accepted draft row, in order."""
        # Row 0 of `done` is the last written token, which `learn_from_picks` calls -1: see `drafting.policy`.
        learn_from_picks(rows.plan, {row - 1: done.picked[row] for row in done.accepted_rows}, self._table)
        return [credited(rows.plan.rows[row - 1], self._table) for row in done.accepted_rows[1:]]

    def _extend_drafters(self) -> None:
        """Give the drafters the tokens that were written since the last call."""
        if new := self._path[self._num_given :]:
            self._num_given = len(self._path)
            for drafter in self._drafters:
                drafter.extend(new)

    def _ask(
        self, drafter: Drafter, max_tokens: int, allowed: Allowed, min_probability: float
    ) -> list[Draft]:
        """Return a drafter's drafts, each cut before the first id that the target does not have."""
        usable: list[Draft] = []
        for draft in drafter.drafts(max_tokens, allowed, min_probability):
            bad = (at for at, guess in enumerate(draft) if not 0 <= guess.token < self._num_tokens)
            usable.append(draft[: next(bad, len(draft))])
        return usable


def _holds_no_secret(path: Sequence[int], num_prompt: int, spell: Callable[[list[int]], bytes]) -> bool:
    """Return whether redaction changes nothing in what drafters would store.

    That is the completion and `NUM_REMEMBERED_BEFORE` tokens before it.
    """
    at = max(0, num_prompt - NUM_REMEMBERED_BEFORE)
    before, kept = (
        spell(list(tokens)).decode(errors="replace")
        for tokens in (path[max(0, at - _NUM_SCANNED_BEFORE) : at], path[at:])
    )
    return blank_secrets(before + kept).endswith(kept)
