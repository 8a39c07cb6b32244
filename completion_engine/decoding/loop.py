"""One completion being written: draft, verify, accept, rewind, until `ending` stops it.

`Decoding` owns the tokens of the completion, and which of them are cached.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from completion_engine.decoding.completion import Writing
from completion_engine.decoding.picking import OpenRows, Picker, RepositoryBias
from completion_engine.decoding.planner import DraftPlanner, PassRows, Verified
from completion_engine.decoding.reuse import PastCompletion, Slot
from completion_engine.drafting.drafts import Drafter, DraftScope, DraftToken
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.drafting.tree import verify
from completion_engine.probability import NOT_SCORED, TokenProbability
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.request import CompletionStats
from completion_engine.target_model.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class DecodingSetup:
    """The parts that write a completion: the target, its tokens without padding, and the drafters.

    Without `drafts_trees` drafts are chains. `bias` is mixed into the target's distribution. With `scores`
    each written token gets its probability. The drafters draft from `scope`.
    """

    target: LanguageModel
    num_tokens: int
    drafters: Sequence[Drafter]
    table: AcceptanceTable
    drafts_trees: bool = True
    bias: RepositoryBias | None = None
    scores: bool = True
    scope: DraftScope | None = None


class Decoding(Writing):
    """The tokens of one completion.

    The path is the prompt and the written tokens. The cache holds a prefix of the path, never its last token,
    whose logits the next pass needs.

    A chunk is a fixed number of prompt tokens that one prefill pass computes. Only targets whose bits depend
    on the number of rows in a pass have chunks: their prompts are always computed in the same chunks, counted
    from the beginning (see `target_model.passes`). `num_chunked` leading tokens of a prompt belong to
    chunks; it is 0 for other targets.
    """

    def __init__(
        self, setup: DecodingSetup, slot: Slot, prompt: Prompt, written: Written, stats: CompletionStats
    ) -> None:
        super().__init__(prompt, written, stats)
        self._setup, self._target = setup, setup.target
        self._cache = slot.cache
        self._planner: DraftPlanner | None = None  # from the first pass on
        self._chunks = self._target.chunks
        self._max_branches = self._target.max_branches if setup.drafts_trees else 1
        self._num_chunked = self._chunks.num_chunked(self._num_prompt)
        # The slot's past completion is read here, before this one replaces it below.
        reused = slot.continuation(prompt, written, setup.bias, self._chunks, needs_scores=setup.scores)
        # A completion has one view of the index, from its first token to its last, reused tokens included.
        self.bias = slot.past.bias if reused.tokens else setup.bias
        self._picker = Picker(setup.num_tokens, self.bias, setup.scores)
        self._reuse([*self.path, *reused.tokens])
        self._extend(reused.tokens, reused.sources, reused.probabilities)
        self._rewind()
        # The lists are shared: the past completion grows with this one.
        slot.past = PastCompletion(
            self.path, self._num_prompt, prompt.healed, self.sources, self.probabilities, self.bias
        )

    @property
    def num_pending(self) -> int:
        """Number of tokens of the path that are not cached."""
        return len(self.path) - self._cache.num_cached

    @property
    def next_ms(self) -> float:
        """The milliseconds of the next step without drafts, by current pass times."""
        if num_rows := self._num_prefilled(float("inf")):
            return self._target.prefill_ms(num_rows)
        return self._target.ms_of(self.num_pending)

    @property
    def cold_ms(self) -> float:
        """The milliseconds to compute the uncached tokens; 0 if at least half of the prompt is cached."""
        is_cold = 2 * self._cache.num_cached < self._num_prompt
        return (self.num_pending - 1) * self._target.prompt_token_ms if is_cold else 0.0

    def step(self, within_ms: float = float("inf")) -> None:
        """Run one pass of the target; call `finish` between steps to find out whether to stop.

        Drafts and prompt tokens are limited so that the pass takes at most `within_ms`, unless a chunk needs
        a fixed number of them.
        """
        uncached = self._uncached()
        if num_rows := self._num_prefilled(within_ms):
            self._prefill(uncached[:num_rows])
            return
        rows = self._draft(uncached, within_ms)
        self._accept(rows, self._verify(rows))
        self._rewind()

    def end(self) -> None:
        """Let the drafters store the completion."""
        if self._planner is not None:
            self._planner.end(self.written.spell)

    def prepare(self, within_ms: float = float("inf")) -> bool:
        """Cache some of the uncached tokens, limited as in `step`.

        Return False when all tokens but the last are cached.
        """
        if self.num_pending > 1:
            self._prefill(self._uncached()[: self._prefill_rows(within_ms)])
        return self.num_pending > 1

    def _uncached(self) -> list[int]:
        """Return the tokens of the path that are not cached: always at least the last one."""
        return self.path[self._cache.num_cached :]

    def _reuse(self, path: Sequence[int]) -> None:
        """Rewind the cache to its longest common prefix with `path`, as far as chunks allow."""
        cache = self._cache
        num_shared = cache.num_shared(path)
        cache.rewind(self._chunks.num_reusable(num_shared, cache.num_from_chunks, self._num_chunked))
        self.stats.num_prompt_tokens = self._num_prompt
        self.stats.num_cached_tokens = min(self._num_prompt, cache.num_cached)

    def _num_prefilled(self, within_ms: float) -> int:
        """Return the number of rows of the next prefill pass; 0 if a verification pass is next."""
        most = min(self._chunks.max_pending, self._target.rows_within(within_ms) + 1)
        is_next = self._cache.num_cached < self._num_chunked or self.num_pending > most
        return self._prefill_rows(within_ms) if is_next else 0

    def _prefill_rows(self, within_ms: float) -> int:
        """Return the number of rows of a prefill pass that takes at most `within_ms`."""
        most, num_cached = self._target.rows_within(within_ms), self._cache.num_cached
        return self._chunks.prefill_rows(num_cached, self._num_chunked, self.num_pending, most)

    def _prefill(self, chunk: Sequence[int]) -> None:
        begin = time.perf_counter()
        self._target.prefill(chunk, self._cache)
        if self._cache.num_cached < self._num_chunked:
            self._cache.keep_chunk(chunk)
        else:
            self._cache.keep(chunk)
        self.stats.ms["prefill"] += (time.perf_counter() - begin) * 1e3

    def _drafting(self) -> DraftPlanner:
        """Return the planner. A completion that is reused as a whole never begins the drafters."""
        if self._planner is None:
            drafters = self._setup.drafters if self._target.verifies_drafts else ()
            # The planner shares the list of the path, and sees it grow.
            self._planner = DraftPlanner(drafters, self._setup.table, self._setup.num_tokens, self.path)
            self._planner.begin(self._num_prompt, self._cache, self._setup.scope)
        return self._planner

    def _draft(self, uncached: Sequence[int], within_ms: float) -> PassRows:
        """Plan the rows of the next pass: the uncached tokens, and the draft that is worth verifying."""
        begin = time.perf_counter()
        costs = self._target.costs_from(len(uncached), self._max_branches).within(within_ms)
        free = self._cache.capacity - self._cache.num_cached
        max_rows = max(0, min(max(costs.pass_ms), free) - len(uncached))
        rows = self._drafting().plan(uncached, costs, max_rows, self.written.allows)
        self.stats.num_drafted += len(rows.plan.rows)
        self.stats.ms["draft"] += (time.perf_counter() - begin) * 1e3
        return rows

    def _verify(self, rows: PassRows) -> Verified:
        """Run the rows, and accept draft tokens that equal the target's picks."""
        begin = time.perf_counter()
        tokens, parents = rows.open_tokens, rows.open_parents
        logits = self._target.forward(rows.tokens, self._cache, len(tokens), rows.parents)
        picks = self._picker.pick(OpenRows(self.path, tokens, parents, self.written.healing()), logits)
        pass_ms = (time.perf_counter() - begin) * 1e3
        self.stats.num_forwards += 1
        self.stats.ms["verify"] += pass_ms
        self._target.record(max(rows.plan.ms, self._target.ms_of(len(rows.tokens))), pass_ms)
        return Verified(picks.tokens, (0, *verify(tokens, parents, picks.tokens)), picks.probabilities)

    def _accept(self, rows: PassRows, done: Verified) -> None:
        """Cache and append the accepted tokens and the target's own; the drafters learn from the pass."""
        begin = time.perf_counter()
        path = [*range(rows.num_before), *(rows.num_before + row for row in done.accepted_rows)]
        written = [done.picked[row] for row in done.accepted_rows]
        self._target.keep(self._cache, rows.parents, path, [*rows.uncached, *written[:-1]])
        self.stats.ms["verify"] += (time.perf_counter() - begin) * 1e3
        guesses = self._drafting().learn(rows, done)
        for guess in guesses:
            self.stats.accept(guess.source)
        num_before = len(self.path)
        self._extend(written, [*guesses, None], [*done.probabilities, *(NOT_SCORED for _ in written)])
        self.stats.num_written += len(self.path) - num_before

    def _rewind(self) -> None:
        """Drop the last token from the cache, and accepted tokens after an end token, which left the path."""
        self._cache.rewind(min(self._cache.num_cached, len(self.path) - 1))

    def _extend(
        self,
        tokens: Sequence[int],
        sources: Sequence[DraftToken | None],
        probabilities: Sequence[TokenProbability],
    ) -> None:
        """Append tokens up to the first end token. Surplus `probabilities` are ignored."""
        for token, source, probability in zip(tokens, sources, probabilities, strict=False):
            if self.tokens and self.written.is_end(self.path[-1]):
                return
            self.path.append(token)
            self.sources.append(source)
            self.probabilities.append(probability)
            self.written.add(token)
