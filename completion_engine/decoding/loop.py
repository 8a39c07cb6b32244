"""One completion being written: draft, verify, keep, rewind, stop.

Knows tokens and text; knows nothing of documents, settings and limits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from completion_engine.calibration import SHIPPED, Calibration
from completion_engine.decoding.chances import UNKNOWN, Chance
from completion_engine.decoding.context import DecodingContext
from completion_engine.decoding.device_steps import DeviceSteps
from completion_engine.decoding.keeping import may_be_kept
from completion_engine.decoding.picking import OpenRows, Picker
from completion_engine.decoding.planner import PassRows, Planner
from completion_engine.decoding.repository_memory import RepositoryMemory
from completion_engine.decoding.reuse import known_after
from completion_engine.decoding.slots import Slot
from completion_engine.decoding.verification import verify
from completion_engine.decoding.writing import Ending, Finish, TextRules
from completion_engine.drafting.draft import Draft, DraftToken, Pass
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.written import Written
from completion_engine.stats import CompletionStats


class Decoding:
    """The tokens of one completion: what is forced, what is written, what is cached.

    `path` is the prompt and what is written; the cache holds its beginning, never its last token.
    """

    def __init__(
        self, context: DecodingContext, slot: Slot, prompt: Prompt, written: Written, stats: CompletionStats
    ) -> None:
        self.written = written
        self.stats = stats
        self._cache = slot.cache
        self._target, self._sampler = context.target, context.sampler
        self._chunks = self._target.chunks
        drafters = context.drafters if self._target.verifies_drafts else ()
        self._planner = Planner(drafters, context.table, self._sampler.num_tokens)
        self._device = DeviceSteps(context.device_decoder, self._cache)
        self._max_branches = self._target.max_branches if context.drafts_trees else 1
        self._num_prompt = len(prompt.tokens)
        self._num_chunked = self._chunks.num_chunked(self._num_prompt)
        self._ending = Ending(written)
        known, origins, chances = known_after(
            slot, prompt, written, context.setting, self._chunks, weighs=context.weighs
        )
        # A text has one view of the repository, from its first token to its last.
        self._picker = Picker(self._sampler, slot.memory if known else context.memory, context.weighs)
        self._path = list(prompt.tokens)
        self._origins: list[DraftToken | None] = []
        self._chances: list[Chance] = []
        self._reuse([*self._path, *known])
        self._planner.begin(prompt.tokens, self._cache)
        self._extend(known, origins, chances)
        self._rewind()
        slot.path, slot.num_forced, slot.healed = self._path, self._num_prompt, prompt.healed
        slot.setting, slot.memory = context.setting, self.memory
        slot.origins, slot.chances = self._origins, self._chances

    @property
    def tokens(self) -> list[int]:
        """The tokens written so far; drafts may have brought more than a rule let count."""
        return self._path[self._num_prompt :]

    @property
    def memory(self) -> RepositoryMemory | None:
        """The repository's memory that is mixed into what is written."""
        return self._picker.memory

    @property
    def num_checked(self) -> int:
        """Of these the ones that `finish` has looked at: the same ones whatever was drafted."""
        return self._ending.num_checked

    @property
    def origins(self) -> list[DraftToken | None]:
        """For each written token the draft it was accepted from; None where the target wrote it itself."""
        return self._origins

    @property
    def chances(self) -> list[Chance]:
        """How likely each written token was, as far as that is known."""
        return self._chances

    @property
    def num_pending(self) -> int:
        """Tokens that are known and not yet in the cache."""
        return len(self._path) - self._cache.num_cached

    def must_prepare(self, within_ms: float) -> bool:
        """Whether the next pass only brings known tokens into the cache, lest it passes `within_ms`."""
        num_pending = self.num_pending
        return self._num_prefilled(num_pending) > 0 or num_pending - 1 > self._target.rows_within(within_ms)

    @property
    def next_ms(self) -> float:
        """What the next step takes at least, by what passes take now."""
        if num_rows := self._num_prefilled(self.num_pending):
            return self._target.prefill_ms(num_rows)
        return self._target.ms_of(self.num_pending)

    @property
    def cold_ms(self) -> float:
        """What computing a prompt takes of which most is missing; 0 where most is cached."""
        is_cold = 2 * self._cache.num_cached < self._num_prompt
        return (self.num_pending - 1) * self._target.prompt_token_ms if is_cold else 0.0

    def step(self, within_ms: float = float("inf")) -> None:
        """One pass of the target. Whether to stop is asked between steps: see `finish`.

        Nothing is drafted that takes a pass longer than `within_ms`.
        """
        known = self._known()
        if num_rows := self._num_prefilled(len(known)):
            self._prefill(known[:num_rows])
        elif self._is_free() and self._device.can_step(len(known)):
            self._step_on_device()
            self._rewind()
        else:
            rows = self._draft(known, within_ms)
            done, chances = self._verify(rows)
            self._keep(rows, done, chances)
            self._rewind()

    def prepare(self, within_ms: float = float("inf")) -> bool:
        """Compute some of what is known, in `within_ms` where that can be chosen.

        False when all of it but the last token is cached.
        """
        if self.num_pending > 1:
            num_rows = self._chunks.prefill_rows(
                self._cache.num_cached,
                self._num_chunked,
                self.num_pending,
                self._target.rows_within(within_ms),
            )
            self._prefill(self._known()[:num_rows])
        return self.num_pending > 1

    def finish(
        self,
        rules: TextRules,
        max_tokens: int,
        min_survival: float = 0.0,
        calibration: Calibration = SHIPPED,
    ) -> Finish | None:
        """Whether what is written ends the completion; see `Ending`."""
        return self._ending.finish(self.tokens, self._chances, rules, max_tokens, min_survival, calibration)

    def shares_of(self, text: str) -> list[float]:
        """How likely each token of `text` is behind the prompt, in place of what was written there."""
        bound, tokens = self.written.bound, self.written.tokens_of(text)
        self._cache.rewind(min(self._cache.num_cached, self._num_prompt - 1))
        prompt = self._path[: self._num_prompt]
        rows = [*prompt[self._cache.num_cached :], *tokens[:-1]]
        logits = self._target.forward(rows, self._cache, len(tokens))
        return self._picker.shares_of(prompt, tokens, bound, logits)

    def end(self) -> None:
        """Let the drafters learn from what was written, unless it holds what looks like a secret."""
        self._planner.end(may_be_kept(self._path, self._num_prompt, self.written.spell))

    def _known(self) -> list[int]:
        """Tokens that are true but not yet in the cache; at least the last one, whose logits are needed."""
        return self._path[self._cache.num_cached :]

    def _reuse(self, path: Sequence[int]) -> None:
        """Of what is cached, leave what belongs to `path` and was computed as its prompt has to be."""
        cache = self._cache
        num_shared = cache.num_shared(path)
        cache.rewind(self._chunks.num_reusable(num_shared, cache.num_from_chunks, self._num_chunked))
        self.stats.num_prompt_tokens = self._num_prompt
        self.stats.num_cached_tokens = min(self._num_prompt, cache.num_cached)

    def _num_prefilled(self, num_known: int) -> int:
        """Rows of the next pass where it brings known tokens into the cache and nothing else, else 0."""
        num_cached = self._cache.num_cached
        if num_cached < self._num_chunked or num_known > self._chunks.max_pending:
            return self._chunks.prefill_rows(num_cached, self._num_chunked, num_known)
        return 0

    def _prefill(self, chunk: Sequence[int]) -> None:
        begin = time.perf_counter()
        num_cached = self._cache.num_cached
        self._target.forward(chunk, self._cache, 0)
        pass_ms = (time.perf_counter() - begin) * 1e3
        if num_cached < self._num_chunked:  # such passes are not among those whose times are known
            self._cache.keep_chunk(chunk)
        else:
            self._cache.keep(chunk)
            self._target.record(self._target.prefill_ms(len(chunk)), pass_ms)
        self.stats.ms["prefill"] += pass_ms

    def _draft(self, known: Sequence[int], within_ms: float) -> PassRows:
        """The rows of the next pass: what is known, and what is worth guessing behind it."""
        begin = time.perf_counter()
        costs = self._target.costs_from(len(known), self._max_branches).within(within_ms)
        free = self._cache.capacity - self._cache.num_cached
        room = max(0, min(max(costs.pass_ms), free) - len(known))
        rows = self._planner.plan(known, costs, room, self.written.allows)
        self.stats.num_drafted += len(rows.plan.rows)
        self.stats.ms["draft"] += (time.perf_counter() - begin) * 1e3
        return rows

    def _verify(self, rows: PassRows) -> tuple[Pass, list[Chance]]:
        """Run the rows; what the target picks behind each says which of the drafted ones are true.

        Beside the pass come the chances of what it picked behind the true ones.
        """
        begin = time.perf_counter()
        tokens, parents = rows.open_tokens, rows.open_parents
        logits = self._target.forward(rows.tokens, self._cache, len(tokens), rows.parents)
        picks = self._picker.pick(OpenRows(self._path, tokens, parents, self.written.healing()), logits)
        pass_ms = (time.perf_counter() - begin) * 1e3
        self.stats.num_forwards += 1
        self.stats.ms["verify"] += pass_ms
        self._target.record(max(rows.plan.ms, self._target.ms_of(len(rows.tokens))), pass_ms)
        num_real = len(rows.plan.rows) + 1
        verdict = verify(tokens[:num_real], parents[:num_real], picks.tokens[:num_real])
        return Pass(tokens, parents, logits, picks.tokens, (0, *verdict.path)), picks.chances

    def _keep(self, rows: PassRows, done: Pass, chances: Sequence[Chance]) -> None:
        """What turned out true is cached and written, and all learn from it."""
        begin = time.perf_counter()
        path = [*range(rows.num_before), *(rows.num_before + row for row in done.path)]
        written = [*(done.tokens[row] for row in done.path[1:]), done.picked[done.path[-1]]]
        self._target.keep(self._cache, rows.parents, path, [*rows.known, *written[:-1]])
        self.stats.ms["verify"] += (time.perf_counter() - begin) * 1e3
        self._accept(written, self._planner.learn(rows, done), chances)

    def _rewind(self) -> None:
        """Forget what is cached beyond the last token but one: nothing counts behind an end."""
        self._cache.rewind(min(self._cache.num_cached, len(self._path) - 1))

    def _is_free(self) -> bool:
        """Whether the target's likeliest token is written, whatever it is."""
        return not (self._sampler.temperature or self.written.healing().bytes or self.memory)

    def _step_on_device(self) -> None:
        """A step that the device takes by itself; while it does, others draft for the one behind it."""

        def drafts(max_depth: int) -> list[Draft]:
            return self._planner.cheap_drafts(max_depth, self.written.allows)

        done = self._device.step(self._path, drafts, self.stats)
        self._accept(done.written, done.accepted)

    def _accept(
        self, written: Sequence[int], accepted: Sequence[DraftToken], chances: Sequence[Chance] = ()
    ) -> None:
        """The target wrote `written`, all but the last token of it as `accepted` guessed."""
        for guess in accepted:
            self.stats.accept(guess.source)
        num_before = len(self._path)
        self._extend(written, [*accepted, None], [*chances, *(UNKNOWN for _ in written)])
        self.stats.num_written += len(self._path) - num_before

    def _extend(
        self, tokens: Sequence[int], origins: Sequence[DraftToken | None], chances: Sequence[Chance]
    ) -> None:
        """Append true tokens; nothing counts behind an end token."""
        for token, origin, chance in zip(tokens, origins, chances, strict=False):  # chances may be more
            if self.tokens and self.written.is_end(self._path[-1]):
                return
            self._path.append(token)
            self._origins.append(origin)
            self._chances.append(chance)
            self.written.add(token)
            self._planner.extend(token)
