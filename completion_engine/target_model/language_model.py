"""The target: a decoder on a device, its passes, their costs, and what their bits depend on.

Has no access to drafts or prompts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from completion_engine.target_model.decoder import BranchCaches, BranchStorage, Decoder, lay_out
from completion_engine.target_model.exactness import (
    branches_are_exact,
    fixed_width_holds,
    rows_are_invariant,
)
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.measuring import can_be_final, measure, rehearse, resume
from completion_engine.target_model.passes import ROWS, ChunkRule, Costs, Findings, PassClock, pad_rows
from completion_engine.target_model.threads import ThreadGovernor, num_threads_here, use_threads
from completion_engine.target_model.weights import Precision

logger = logging.getLogger(__name__)

PREFILL_ROWS = 64
_PREFILL_ROWS_CUDA = 256
WIDTHS = (8, 16, 24)  # rows of a verification pass that the policy may choose from
_NARROW = (1, 2, 4)  # and these where a pass may run any number of rows


class LanguageModel:
    """A target ready to run. All calls belong to one thread."""

    is_row_invariant = True  # until it is tested

    def __init__(  # noqa: PLR0913 - what a target is made of
        self,
        decoder: Decoder,
        device: torch.device,
        precision: Precision,
        capacity: int,
        branches: BranchStorage | None = None,
        known: Findings | None = None,
    ) -> None:
        """`branches` is where the decoder wants the rows of a tree; each branch in a branch by default.

        Results of an earlier load that are `known` are reused, except times that were disturbed and can be
        measured better now. A known target has run no pass yet: see `rehearse`.
        """
        self.decoder, self.device = decoder, device
        self.precision, self.capacity = precision, capacity
        self._keys_by_channel = device.type == "cpu" and branches is None
        self._branches = branches or BranchCaches(self.cache_shape)
        self.governor = ThreadGovernor({num_threads_here(): 1.0})
        wide = PREFILL_ROWS if device.type == "cpu" else _PREFILL_ROWS_CUDA
        self._prefill_rows = wide if wide < capacity else PREFILL_ROWS
        self.is_row_invariant = (
            known.is_row_invariant if known else rows_are_invariant(self, self._prefill_rows)
        )
        self.verifies_drafts = known.verifies_drafts if known else self._drafts_are_harmless()
        self.verifies_trees = known.verifies_trees if known else self._trees_are_harmless()
        self.max_branches = self._branches.max_branches if self.verifies_trees else 1
        self.chunks, self.widths = self._chunk_rule(), self._widths()
        fits = known and known.pass_ms.keys() == set(self.widths) and (known.are_final or not can_be_final())
        self.findings = resume(self, known) if known and fits else measure(self)
        self._is_rehearsed = self.findings is not known
        self.clock = PassClock(self.findings.pass_ms, self.findings.branch_ms)
        self._take_threads()

    @property
    def pass_ms(self) -> dict[int, float]:
        """Milliseconds of a pass by width, as they are now."""
        return self.clock.pass_ms

    @property
    def _row_step(self) -> int:
        """Passes run a multiple of this number of rows."""
        return self.decoder.row_step if self.is_row_invariant else ROWS

    @property
    def exactness(self) -> str:
        """The strategy that keeps drafts from changing the text."""
        if self.is_row_invariant:
            return "row-invariant"
        return "fixed width" if self.verifies_drafts else "no drafts"

    @property
    def num_branch_bytes(self) -> int:
        """Memory of the caches that a tree's further branches take."""
        return self._branches.num_bytes

    @property
    def vocab_size(self) -> int:
        """Entries of a row of logits; may be padded beyond the tokenizer's."""
        return self.decoder.vocab_size

    @property
    def num_weight_bytes(self) -> int:
        """Memory of the weights."""
        return self.decoder.num_weight_bytes

    @property
    def cache_shape(self) -> CacheShape:
        """Geometry of a KV cache for this target."""
        decoder = self.decoder
        return CacheShape(
            decoder.num_layers,
            decoder.num_kv_heads,
            decoder.head_size,
            decoder.hidden_size,
            self.capacity,
            self.precision.dtype,
            self.device,
            self._keys_by_channel,
        )

    def costs_from(self, num_pending: int, max_branches: int = 1) -> Costs:
        """Costs of passes that hold `num_pending` known rows; for wider ones in proportion."""
        known, branch_ms, top = self.clock.pass_ms, self.clock.branch_ms, max(self.widths)
        if num_pending <= max(ROWS, top - ROWS):
            wide = {width: ms for width, ms in known.items() if width >= num_pending}
            return Costs(wide, branch_ms, max_branches)
        slope = (known[top] - known[ROWS]) / max(1, top - ROWS)
        first = pad_rows(num_pending)
        pass_ms = {width: known[ROWS] + slope * (width - ROWS) for width in (first, first + ROWS)}
        return Costs(pass_ms, branch_ms, max_branches)

    def ms_of(self, num_rows: int) -> float:
        """Current milliseconds of the cheapest pass that holds this number of rows."""
        return self.costs_from(num_rows).ms_of(num_rows)

    @property
    def prompt_token_ms(self) -> float:
        """Milliseconds that a token of a long prompt takes, as passes are now."""
        return self.prefill_ms(self.chunks.num_rows) / self.chunks.num_rows

    @property
    def least_prompt_token_ms(self) -> float:
        """The same when the machine was quickest: it may have been busy at load."""
        return self.prompt_token_ms * self.clock.least_level / self.clock.level

    def prefill_ms(self, num_rows: int) -> float:
        """Current milliseconds of a pass that computes this number of prompt rows into a cache."""
        at_least, a_row = self._prefill_line()
        return at_least + a_row * num_rows

    def rows_within(self, ms: float) -> int:
        """Rows of the widest prefill pass that takes no longer than `ms`; a few in any case."""
        if ms >= self.prefill_ms(self.chunks.num_rows):
            return self.chunks.num_rows
        at_least, a_row = self._prefill_line()
        return max(ROWS, int((ms - at_least) / a_row) // ROWS * ROWS)

    def _prefill_line(self) -> tuple[float, float]:
        """Time to read the weights, and time per row: a line through the narrowest pass and a chunk."""
        narrow, num_rows = min(self.widths), self.chunks.num_rows
        narrow_ms, level = self.pass_ms[narrow], self.clock.level
        chunk_ms = self.findings.chunk_ms * level or self.ms_of(num_rows)
        a_row = max(chunk_ms - narrow_ms, 0.1 * chunk_ms) / max(1, num_rows - narrow)
        return chunk_ms - a_row * num_rows, a_row

    def rehearse(self) -> None:
        """Run a few passes if this load has run none, so that the first request does not pay for one-time
        setup.
        """
        if not self._is_rehearsed:
            self._is_rehearsed = True
            rehearse(self)

    def record(self, expected_ms: float, ms: float) -> None:
        """A pass that was expected to take `expected_ms`, by the figures of now, took `ms`."""
        self.governor.record(self.clock.record(expected_ms, ms), time.monotonic())

    def prefill(self, tokens: Sequence[int], cache: KVCache) -> None:
        """Bring `tokens` of a prompt into the cache; the caller keeps them."""
        expected_ms, begin = self.prefill_ms(len(tokens)), time.perf_counter()
        self.forward(tokens, cache, 0)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)  # otherwise the time would be that of the launch
        self.record(expected_ms, (time.perf_counter() - begin) * 1e3)

    @torch.inference_mode()
    def forward(
        self, tokens: Sequence[int], cache: KVCache, num_logits: int, parents: Sequence[int] | None = None
    ) -> Tensor:
        """Run `tokens` after the cached positions; logits [num_logits, vocab_size] of the last ones.

        `parents` [num_tokens] makes a tree of them: the row that each follows, -1 for the first. Without it
        each follows the one before. Does not change the cache's length: call `keep`
        with the accepted rows.
        """
        num_rows = pad_rows(len(tokens), self._row_step)
        chain = range(len(tokens) - 1, num_rows - 1)
        layout = lay_out([*(range(-1, len(tokens) - 1) if parents is None else parents), *chain])
        if cache.num_cached + max(layout.depths) >= cache.capacity:
            raise ValueError(f"{num_rows} rows do not fit after {cache.num_cached} of {cache.capacity}")
        padding = [0] * (num_rows - len(tokens))
        rows = torch.tensor([*tokens, *padding])
        self._take_threads()
        caches = self._branches.open(cache, layout)
        # Where bits depend on how many rows run, the head runs all of them too, whatever is asked of it.
        num_before = 0 if self.is_row_invariant else len(tokens) - num_logits
        num_computed = num_before + num_logits + len(padding) if num_logits else 0
        with self.governor.computing():
            logits = self.decoder.forward(rows, layout, caches, num_computed)
        return logits[num_before : num_before + num_logits] if num_logits else logits

    @torch.inference_mode()
    def keep(
        self, cache: KVCache, parents: Sequence[int], path: Sequence[int], tokens: Sequence[int]
    ) -> None:
        """Keep the rows `path` of the pass just run, whose tokens are `tokens`; `parents` as in `forward`."""
        self._branches.keep(cache, lay_out(parents), path, tokens)

    def _take_threads(self) -> None:
        """For what this thread computes next."""
        use_threads(self.governor.chosen(time.monotonic()), in_torch=self.decoder.computes_in_torch)

    def _widths(self) -> tuple[int, ...]:
        """Rows of the passes that the policy may choose from."""
        if not self.is_row_invariant:
            return (ROWS,)
        return (*_NARROW, *WIDTHS) if self._row_step == 1 else WIDTHS

    def _chunk_rule(self) -> ChunkRule:
        """How prompts get into a cache."""
        if not self.is_row_invariant:
            return ChunkRule(PREFILL_ROWS, ROWS)
        return ChunkRule(self._prefill_rows)

    def _drafts_are_harmless(self) -> bool:
        """Whether rows change nothing, or passes of one width do not; where both do, nothing is drafted."""
        if self.is_row_invariant or fixed_width_holds(self, PREFILL_ROWS):
            return True
        logger.warning("The results of this target depend on the other rows of a pass: nothing is drafted.")
        return False

    def _trees_are_harmless(self) -> bool:
        return self.is_row_invariant and branches_are_exact(self, PREFILL_ROWS)
