"""One completion being written: draft, verify, accept, rewind, and stop where `ending` says.

Owns the tokens of the completion and which of them are cached. Does not depend on documents, settings and
limits.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from completion_engine.decoding.ending import Ending, Finish, Limits, TextRules
from completion_engine.decoding.planner import DraftPlanner, PassRows
from completion_engine.decoding.repository_bias import RepositoryBias
from completion_engine.decoding.reuse import PastCompletion
from completion_engine.decoding.sampling import OpenRows, Picker, Sampler
from completion_engine.decoding.slots import Slot
from completion_engine.drafting.device_steps import DeviceDecoder, DeviceSteps
from completion_engine.drafting.drafts import Draft, Drafter, DraftToken, Pass
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.drafting.tree import verify
from completion_engine.probability import NOT_SCORED, TokenProbability
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.request import DraftScope
from completion_engine.stats import CompletionStats
from completion_engine.target_model.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class DecodingSetup:
    """What writes a completion: the target, how it picks, and the drafters ahead of it, in trees or in
    chains.

    `device_decoder` takes whole steps of greedy decoding where it can. `bias` is mixed into what the target
    writes. With `scores` the probability of each written token is known. The drafters draft from `scope`.
    """

    target: LanguageModel
    sampler: Sampler
    drafters: Sequence[Drafter]
    table: AcceptanceTable
    drafts_trees: bool = True
    device_decoder: DeviceDecoder | None = None
    bias: RepositoryBias | None = None
    scores: bool = True
    scope: DraftScope | None = None

    @property
    def setting(self) -> Hashable:
        """The inputs of a pick besides the logits and the state of the repository."""
        return (*self.sampler.setting, self.bias.source if self.bias else None)


class Decoding:
    """The tokens of one completion: forced by the prompt, written, and cached.

    `path` is the prompt and the written tokens; the cache holds its beginning, never its last token.
    """

    def __init__(
        self, setup: DecodingSetup, slot: Slot, prompt: Prompt, written: Written, stats: CompletionStats
    ) -> None:
        self.written, self.stats = written, stats
        self.sources: list[DraftToken | None] = []
        self.probabilities: list[TokenProbability] = []
        self._target, self._sampler, self._cache = setup.target, setup.sampler, slot.cache
        self._chunks = self._target.chunks
        self._max_branches = self._target.max_branches if setup.drafts_trees else 1
        self._num_prompt = len(prompt.tokens)
        self._num_chunked = self._chunks.num_chunked(self._num_prompt)
        self._ending = Ending(written)
        reused = slot.continuation(prompt, written, setup.setting, self._chunks, needs_scores=setup.scores)
        # A completion has one view of the repository, from its first token to its last.
        self.bias = slot.past.bias if reused.tokens else setup.bias
        self._picker = Picker(self._sampler, self.bias, setup.scores)
        self._path = list(prompt.tokens)
        self._reuse([*self._path, *reused.tokens])
        drafters = setup.drafters if self._target.verifies_drafts else ()
        self._planner = DraftPlanner(drafters, setup.table, self._sampler.num_tokens, setup.scope)
        self._planner.begin(self._path, self._num_prompt, self._cache)
        self._device = DeviceSteps(setup.device_decoder, self._cache) if setup.device_decoder else None
        self._extend(reused.tokens, reused.sources, reused.probabilities)
        self._rewind()
        slot.past = PastCompletion(
            self._path,
            self._num_prompt,
            prompt.healed,
            setup.setting,
            self.sources,
            self.probabilities,
            self.bias,
        )

    @property
    def tokens(self) -> list[int]:
        """The tokens written so far; drafts may have brought more than a rule let count."""
        return self._path[self._num_prompt :]

    @property
    def num_checked(self) -> int:
        """Number of leading tokens that `finish` has looked at: the same whatever was drafted."""
        return self._ending.num_checked

    @property
    def num_pending(self) -> int:
        """Tokens that are known and not yet in the cache."""
        return len(self._path) - self._cache.num_cached

    @property
    def next_ms(self) -> float:
        """The least time of the next step, by the present times of passes."""
        if num_rows := self._num_prefilled(self.num_pending):
            return self._target.prefill_ms(num_rows)
        return self._target.ms_of(self.num_pending)

    @property
    def cold_ms(self) -> float:
        """The time to compute a prompt that is mostly not cached; 0 where most of it is."""
        is_cold = 2 * self._cache.num_cached < self._num_prompt
        return (self.num_pending - 1) * self._target.prompt_token_ms if is_cold else 0.0

    def step(self, within_ms: float = float("inf")) -> None:
        """Run one pass of the target. Whether to stop is asked between steps: see `finish`.

        Nothing is drafted that takes a pass longer than `within_ms`.
        """
        uncached = self._uncached()
        if num_rows := self._num_prefilled(len(uncached)):
            self._prefill(uncached[:num_rows])
            return
        if self._device and self._picks_argmax() and self._device.can_step(len(uncached)):
            self._step_on_device(self._device)
        else:
            rows = self._draft(uncached, within_ms)
            done, probabilities = self._verify(rows)
            self._accept(rows, done, probabilities)
        self._rewind()

    def finish(self, rules: TextRules, limits: Limits) -> Finish | None:
        """Return the end of the completion, None to go on; see `Ending`."""
        return self._ending.finish(self.tokens, self.probabilities, rules, limits)

    def end(self) -> None:
        """Let the drafters learn from what was written."""
        self._planner.end(self.written.spell)

    def must_prepare(self, within_ms: float) -> bool:
        """Return whether the next pass may only cache known tokens, to stay within `within_ms`."""
        num_pending = self.num_pending
        return self._num_prefilled(num_pending) > 0 or num_pending - 1 > self._target.rows_within(within_ms)

    def prepare(self, within_ms: float = float("inf")) -> bool:
        """Compute some of the known tokens, in `within_ms` where that can be chosen.

        Return False when all of them but the last are cached.
        """
        if self.num_pending > 1:
            num_rows = self._chunks.prefill_rows(
                self._cache.num_cached,
                self._num_chunked,
                self.num_pending,
                self._target.rows_within(within_ms),
            )
            self._prefill(self._uncached()[:num_rows])
        return self.num_pending > 1

    def probabilities_of(self, text: str) -> list[float]:
        """Return the probability of each token of `text` after the prompt, in place of what was written."""
        bound, tokens = self.written.bound, self.written.tokens_of(text)
        self._cache.rewind(min(self._cache.num_cached, self._num_prompt - 1))
        prompt = self._path[: self._num_prompt]
        rows = [*prompt[self._cache.num_cached :], *tokens[:-1]]
        logits = self._target.forward(rows, self._cache, len(tokens))
        return self._picker.probabilities_of(prompt, tokens, bound, logits)

    def _uncached(self) -> list[int]:
        """Return the tokens that are not in the cache; at least the last one, whose logits are needed."""
        return self._path[self._cache.num_cached :]

    def _reuse(self, path: Sequence[int]) -> None:
        """Keep of the cache what belongs to `path` and was computed as its prompt has to be."""
        cache = self._cache
        num_shared = cache.num_shared(path)
        cache.rewind(self._chunks.num_reusable(num_shared, cache.num_from_chunks, self._num_chunked))
        self.stats.num_prompt_tokens = self._num_prompt
        self.stats.num_cached_tokens = min(self._num_prompt, cache.num_cached)

    def _num_prefilled(self, num_uncached: int) -> int:
        """Return the rows of a next pass that only caches known tokens; 0 for another pass."""
        num_cached = self._cache.num_cached
        if num_cached < self._num_chunked or num_uncached > self._chunks.max_pending:
            return self._chunks.prefill_rows(num_cached, self._num_chunked, num_uncached)
        return 0

    def _prefill(self, chunk: Sequence[int]) -> None:
        begin = time.perf_counter()
        num_cached = self._cache.num_cached
        is_chunk = num_cached < self._num_chunked  # such passes are not among those whose times are known
        self._target.prefill(chunk, self._cache, counts=not is_chunk)
        if is_chunk:
            self._cache.keep_chunk(chunk)
        else:
            self._cache.keep(chunk)
        self.stats.ms["prefill"] += (time.perf_counter() - begin) * 1e3

    def _wait_for_prefill(self) -> None:
        """Wait for the part of the prompt that a GPU may still compute."""
        begin = time.perf_counter()
        self._target.wait()
        self.stats.ms["prefill"] += (time.perf_counter() - begin) * 1e3

    def _draft(self, uncached: Sequence[int], within_ms: float) -> PassRows:
        """Plan the rows of the next pass: the known tokens, and the guesses after them that are worth it."""
        begin = time.perf_counter()
        costs = self._target.costs_from(len(uncached), self._max_branches).within(within_ms)
        free = self._cache.capacity - self._cache.num_cached
        room = max(0, min(max(costs.pass_ms), free) - len(uncached))
        rows = self._planner.plan(uncached, costs, room, self.written.allows)
        self.stats.num_drafted += len(rows.plan.rows)
        self.stats.ms["draft"] += (time.perf_counter() - begin) * 1e3
        return rows

    def _verify(self, rows: PassRows) -> tuple[Pass, list[TokenProbability]]:
        """Run the rows, and find the drafted ones that are true by the target's pick after each.

        Return the pass, and the probabilities of the picks after the true rows.
        """
        self._wait_for_prefill()
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
        return Pass(tokens, parents, logits, picks.tokens, (0, *verdict.accepted)), picks.probabilities

    def _accept(self, rows: PassRows, done: Pass, probabilities: Sequence[TokenProbability]) -> None:
        """Cache and append what turned out true, and let the drafters learn from the pass."""
        begin = time.perf_counter()
        path = [*range(rows.num_before), *(rows.num_before + row for row in done.accepted_rows)]
        written = [*(done.tokens[row] for row in done.accepted_rows[1:]), done.picked[done.accepted_rows[-1]]]
        self._target.keep(self._cache, rows.parents, path, [*rows.uncached, *written[:-1]])
        self.stats.ms["verify"] += (time.perf_counter() - begin) * 1e3
        self._append(written, self._planner.learn(rows, done), probabilities)

    def _rewind(self) -> None:
        """Forget what is cached beyond the last token but one: nothing counts after an end."""
        self._cache.rewind(min(self._cache.num_cached, len(self._path) - 1))

    def _picks_argmax(self) -> bool:
        """Return whether the target's likeliest token is written, whatever it is."""
        return not (self._sampler.temperature or self.written.healing().bytes or self.bias)

    def _step_on_device(self, device: DeviceSteps) -> None:
        """Let the device take a whole step; meanwhile the other drafters draft for the one after it."""

        def drafts(max_depth: int) -> list[Draft]:
            return self._planner.cheap_drafts(max_depth, self.written.allows)

        done = device.step(self._path, drafts, self.stats)
        self._append(done.written, done.accepted)

    def _append(
        self,
        written: Sequence[int],
        accepted: Sequence[DraftToken],
        probabilities: Sequence[TokenProbability] = (),
    ) -> None:
        """Append what the target wrote: `accepted` guessed all but its last token."""
        for guess in accepted:
            self.stats.accept(guess.source)
        num_before = len(self._path)
        self._extend(written, [*accepted, None], [*probabilities, *(NOT_SCORED for _ in written)])
        self.stats.num_written += len(self._path) - num_before

    def _extend(
        self,
        tokens: Sequence[int],
        sources: Sequence[DraftToken | None],
        probabilities: Sequence[TokenProbability],
    ) -> None:
        """Append true tokens; nothing counts after an end token. There may be more probabilities."""
        for token, source, probability in zip(tokens, sources, probabilities, strict=False):
            if self.tokens and self.written.is_end(self._path[-1]):
                return
            self._path.append(token)
            self.sources.append(source)
            self.probabilities.append(probability)
            self.written.add(token)
