"""One completion being written: draft, verify, keep, rewind, stop.

Knows tokens and text; knows nothing of documents, settings and limits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from completion_engine.attention import pad_rows
from completion_engine.drafting.draft import Draft, Drafter, DraftToken, Pass
from completion_engine.drafting.policy import (
    Costly,
    Plan,
    SurvivalTable,
    choose,
    credited,
    judge,
    min_survival_for,
)
from completion_engine.drafting.stride import Strider
from completion_engine.language_model import LanguageModel
from completion_engine.picking import pick_rows
from completion_engine.prompt import Prompt
from completion_engine.sampling import Sampler
from completion_engine.slots import Slot
from completion_engine.stats import CompletionStats
from completion_engine.verification import verify
from completion_engine.written import Written


class TextRules(Protocol):
    """When a text is long enough; see `completion_engine.suggestions`."""

    def check(self, generated: str) -> object | None:
        """A stop with `rule` and `num_chars`, or None to go on."""
        ...

    def boundary(self, generated: str) -> int:
        """Characters up to the last sensible place to cut."""
        ...


@dataclass(frozen=True, slots=True)
class Finish:
    """Why writing ended, and how many characters of the text count."""

    reason: str
    num_chars: int
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Means:
    """What writes: the target, how it picks, and who guesses ahead of it, in trees or in chains.

    `strider` takes steps of greedy decoding by itself where it can; None where nothing can.
    """

    target: LanguageModel
    sampler: Sampler
    drafters: Sequence[Drafter]
    table: SurvivalTable
    drafts_trees: bool = True
    strider: Strider | None = None


class Decoding:
    """The tokens of one completion: what is forced, what is written, what is cached."""

    def __init__(
        self, means: Means, slot: Slot, prompt: Prompt, written: Written, stats: CompletionStats
    ) -> None:
        self.written = written
        self.stats = stats
        self._slot, self._cache = slot, slot.cache
        self._target, self._sampler = means.target, means.sampler
        self._drafters, self._table = means.drafters, means.table
        self._strider, self._run = means.strider, 0
        self._max_lanes = self._target.max_lanes if means.drafts_trees else 1
        self._num_prompt = len(prompt.tokens)
        self._num_checked = 0
        known, origins = self._known_after(prompt)
        self._path = list(prompt.tokens)
        self._origins: list[DraftToken | None] = []
        self._cache.rewind(self._cache.num_shared([*self._path, *known]))
        stats.num_prompt_tokens = self._num_prompt
        stats.num_cached_tokens = min(self._num_prompt, self._cache.num_cached)
        for drafter in self._drafters:
            drafter.begin(prompt.tokens, self._cache)
        self._extend(known, origins)
        slot.path, slot.num_forced, slot.healed = self._path, self._num_prompt, prompt.healed
        slot.setting, slot.origins = self._sampler.setting, self._origins

    @property
    def tokens(self) -> list[int]:
        """The tokens written so far."""
        return self._path[self._num_prompt :]

    @property
    def origins(self) -> list[DraftToken | None]:
        """For each written token the draft it was accepted from; None where the target wrote it itself."""
        return self._origins

    def prepare(self) -> bool:
        """Compute a chunk of the prompt. False when all of it but the last token is there."""
        pending = self._pending()
        if len(pending) > 1:
            self._prefill(pending[: min(self._target.prefill_rows, len(pending) - 1)])
        return len(pending) - 1 > self._target.prefill_rows

    def step(self) -> None:
        """One pass of the target: a chunk of the prompt, or a verification."""
        pending = self._pending()
        room = self._target.prefill_rows if self._target.is_row_invariant else self._target.widths[0]
        if len(pending) > room:
            self._prefill(pending[: min(self._target.prefill_rows, len(pending) - 1)])
        elif self._strider and len(pending) == 1 and self._is_free() and self._strider.can_step(self._cache):
            self._stride(self._strider)
        else:
            self._draft_and_verify(pending)

    def _draft_and_verify(self, pending: list[int]) -> None:
        plan = self._draft(len(pending))
        num_rows = len(pending) + len(plan.rows)
        lent = self._lent(max(plan.width, pad_rows(num_rows)) - num_rows)
        self._keep(pending, plan, self._verify(pending, plan, lent))

    def _is_free(self) -> bool:
        """Whether the likeliest token is written, whatever it is."""
        return not self._sampler.temperature and not self.written.owing().bytes

    def _stride(self, strider: Strider) -> None:
        """A step that the device takes by itself; while it does, others draft for the one behind it."""
        begin = time.perf_counter()
        if not strider.is_at(self._run, self._cache):
            self._run = strider.begin(self._cache, self._path)
        strider.hint(self._path, self._cheap_drafts(strider.max_depth))
        hinted = time.perf_counter()
        done = strider.step()
        self._cache.keep([self._path[-1], *done.written[:-1]])
        self.stats.ms["draft"] += (hinted - begin) * 1e3
        self.stats.ms["verify"] += (time.perf_counter() - hinted) * 1e3
        self.stats.num_forwards += 1
        self.stats.num_drafted += done.num_drafted
        self._extend(done.written, [*done.accepted, None])
        for guess in done.accepted:
            self.stats.accept(guess.source)

    def finish(self, rules: TextRules, max_tokens: int) -> Finish | None:
        """Whether what is written ends the completion. Looks at each token once, in order."""
        tokens = self.tokens
        while self._num_checked < len(tokens):
            token = tokens[self._num_checked]
            self._num_checked += 1
            num_chars = self.written.ends[self._num_checked - 1]
            if self.written.is_end(token):
                return Finish("end", num_chars)
            stop = rules.check(self.written.text[:num_chars])
            if stop is not None:
                return Finish("stop", stop.num_chars, stop.rule)  # type: ignore[attr-defined]  # see Protocol
            if self._num_checked >= max_tokens:
                return Finish("length", rules.boundary(self.written.text[:num_chars]))
        return None

    def end(self) -> None:
        """Let the drafters learn from what was written."""
        for drafter in self._drafters:
            drafter.end()

    def _known_after(self, prompt: Prompt) -> tuple[list[int], list[DraftToken | None]]:
        """What the slot's last completion already says about this prompt.

        Typing along a suggestion leaves the same tokens in front and only tightens what the next one must
        spell, so the target's earlier pick, the best of a wider choice, is still the best.
        """
        slot, num_prompt = self._slot, len(prompt.tokens)
        num_written = num_prompt - slot.num_forced
        same = slot.setting == self._sampler.setting and slot.path[:num_prompt] == list(prompt.tokens)
        if num_written < 0 or not same:
            return [], []
        typed = self.written.spell(slot.path[slot.num_forced : num_prompt]) + prompt.healed
        known = slot.path[num_prompt:]
        if not typed.startswith(slot.healed) or not self.written.follows(known):
            return [], []
        return known, slot.origins[num_written:]

    def _pending(self) -> list[int]:
        """Tokens that are true but not yet in the cache; at least the last one, whose logits are needed."""
        self._cache.rewind(min(self._cache.num_cached, len(self._path) - 1))
        return self._path[self._cache.num_cached :]

    def _prefill(self, chunk: list[int]) -> None:
        begin = time.perf_counter()
        self._target.forward(chunk, self._cache, 0)
        self._cache.keep(chunk)
        pass_ms = (time.perf_counter() - begin) * 1e3
        self._target.saw(self._target.ms_of(len(chunk)), pass_ms)
        self.stats.ms["prefill"] += pass_ms

    def _draft(self, num_pending: int) -> Plan:
        begin = time.perf_counter()
        costs = self._target.costs_from(num_pending, self._max_lanes)
        free = self._cache.capacity - self._cache.num_cached
        room = max(0, min(max(costs.pass_ms), free) - num_pending)
        drafts = self._cheap_drafts(room)
        plan = choose(drafts, self._table, num_pending, costs)
        for drafter in self._drafters:
            min_survival = min_survival_for(plan, drafter.step_ms, self._table) if drafter.step_ms else 1.0
            if min_survival < 1.0:
                asked_at = time.perf_counter()
                drafts += self._ask(drafter, room, min_survival)
                asked = Costly(plan, (time.perf_counter() - asked_at) * 1e3)
                plan = choose(drafts, self._table, num_pending, costs, asked)
        self.stats.num_drafted += len(plan.rows)
        self.stats.ms["draft"] += (time.perf_counter() - begin) * 1e3
        return plan

    def _cheap_drafts(self, room: int) -> list[Draft]:
        """Of the drafters that cost next to nothing."""
        cheap = (drafter for drafter in self._drafters if not drafter.step_ms)
        return [draft for drafter in cheap for draft in self._ask(drafter, room, 0.0)]

    def _ask(self, drafter: Drafter, room: int, min_survival: float) -> list[Draft]:
        """A drafter's drafts, as far as the target can be asked: a drafter may be of another vocabulary."""
        num_tokens = self._sampler.num_tokens
        usable: list[Draft] = []
        for draft in drafter.drafts(room, self.written.allows, min_survival):
            bad = (at for at, guess in enumerate(draft) if not 0 <= guess.token < num_tokens)
            usable.append(draft[: next(bad, len(draft))])
        return usable

    def _lent(self, num_idle: int) -> Sequence[int]:
        """What a drafter wants to see run in rows that would be idle, a chain behind the last row."""
        wishes = (drafter.lend(num_idle) for drafter in self._drafters if num_idle > 0)
        return next((wish for wish in wishes if wish), ())

    def _verify(self, pending: list[int], plan: Plan, lent: Sequence[int]) -> Pass:
        begin = time.perf_counter()
        tokens = [pending[-1], *(candidate.token for candidate in plan.rows), *lent]
        known, parents = _parents(len(pending), plan, len(lent)), _parents(1, plan, len(lent))
        logits = self._target.forward([*pending[:-1], *tokens], self._cache, len(tokens), known)
        picked = pick_rows(self._sampler, self.written.owing(), logits, tokens, parents, len(self._path))
        pass_ms = (time.perf_counter() - begin) * 1e3
        self.stats.num_forwards += 1
        self.stats.ms["verify"] += pass_ms
        self._target.saw(max(plan.ms, self._target.ms_of(len(pending) + len(tokens) - 1)), pass_ms)
        num_real = len(plan.rows) + 1
        verdict = verify(tokens[:num_real], parents[:num_real], picked[:num_real])
        return Pass(tokens, parents, logits, picked, (0, *verdict.path))

    def _keep(self, pending: list[int], plan: Plan, done: Pass) -> None:
        begin = time.perf_counter()
        written = [*(done.tokens[row] for row in done.path[1:]), done.picked[done.path[-1]]]
        path = [*range(len(pending) - 1), *(len(pending) - 1 + row for row in done.path)]
        parents = _parents(len(pending), plan, len(done.tokens) - len(plan.rows) - 1)
        self._target.keep(self._cache, parents, path, [*pending, *written[:-1]])
        self.stats.ms["verify"] += (time.perf_counter() - begin) * 1e3
        judge(plan, {row - 1: done.picked[row] for row in done.path}, self._table)
        accepted = [credited(plan.rows[row - 1], self._table) for row in done.path[1:]]
        for guess in accepted:
            self.stats.accept(guess.source)
        for drafter in self._drafters:
            drafter.observe(done)
        self._extend(written, [*accepted, None])

    def _extend(self, tokens: list[int], origins: list[DraftToken | None]) -> None:
        """Append true tokens; nothing counts behind an end token."""
        for token, origin in zip(tokens, origins, strict=True):
            if self.tokens and self.written.is_end(self._path[-1]):
                return
            self._path.append(token)
            self._origins.append(origin)
            self.written.add(token)
            for drafter in self._drafters:
                drafter.extend([token])


def _parents(num_pending: int, plan: Plan, num_lent: int) -> list[int]:
    """Parents of a pass's rows: a chain of known ones, the plan behind it, lent ones behind the last row."""
    planned = [*range(-1, num_pending - 1), *(num_pending + parent for parent in plan.parents)]
    return [*planned, *range(len(planned) - 1, len(planned) - 1 + num_lent)]
