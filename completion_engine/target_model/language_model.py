"""The target: a decoder on a device, its passes, what they cost and what their bits depend on.

Knows nothing of drafts and prompts, nor of what a decoder computes with.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from statistics import median

import torch
from torch import Tensor

from completion_engine.target_model.branch_caches import BranchCaches, BranchStorage, lay_out
from completion_engine.target_model.chunks import ChunkRule
from completion_engine.target_model.costs import Costs, PassClock
from completion_engine.target_model.decoder import Decoder
from completion_engine.target_model.exactness import (
    branches_are_exact,
    fixed_width_holds,
    hold_same,
    rows_are_invariant,
)
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.precision import Precision
from completion_engine.target_model.rows import ROWS, pad_rows
from completion_engine.target_model.threads import ThreadGovernor, thread_counts

logger = logging.getLogger(__name__)

PREFILL_ROWS = 64
_PREFILL_ROWS_CUDA = 256
_NUM_ROUNDS = 5  # of measuring passes, at most
_ALIKE = 1.1  # times of a pass that differ by less are not worth another round
WIDTHS = (8, 16, 24)  # rows of a verification pass that the policy may choose from
_NARROW = (1, 2, 4)  # and these where a pass may run any number of rows


class LanguageModel:
    """A target ready to run. All calls belong to one thread."""

    def __init__(
        self,
        decoder: Decoder,
        device: torch.device,
        precision: Precision,
        capacity: int,
        branches: BranchStorage | None = None,
    ) -> None:
        """`branches` is where the decoder wants the rows of a tree; each branch in a branch by default."""
        self.decoder = decoder
        self.device = device
        self.precision = precision
        self.capacity = capacity
        self._keys_by_channel = device.type == "cpu" and branches is None
        self._branches = branches or BranchCaches(self.cache_shape)
        self.governor = ThreadGovernor({torch.get_num_threads(): 1.0})
        self._row_step = decoder.row_step
        self.is_row_invariant = True
        self.is_row_invariant = rows_are_invariant(self, PREFILL_ROWS)
        if not self.is_row_invariant:
            self._row_step = ROWS
        self.verifies_drafts = self.is_row_invariant or self._fixed_width_holds()
        self.verifies_trees = self.is_row_invariant and branches_are_exact(self, PREFILL_ROWS)
        self.max_branches = self._branches.max_branches if self.verifies_trees else 1
        self.chunks = self._chunk_rule()
        self.widths = self._widths()
        self.clock = self._measure_passes()
        self.governor = self._choose_threads()
        self.governor.apply(time.monotonic())

    @property
    def pass_ms(self) -> dict[int, float]:
        """Milliseconds of a pass by width, as they are now."""
        return self.clock.pass_ms

    @property
    def exactness(self) -> str:
        """What keeps drafts from changing the text."""
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
    def embedding(self) -> Tensor:
        """What the first layer reads of each token, [vocab_size, hidden_size]."""
        return self.decoder.embedding

    @property
    def rotary(self) -> tuple[Tensor, Tensor] | None:
        """See `Decoder.rotary`."""
        return self.decoder.rotary

    def head_rows(self, tokens: Tensor) -> Tensor:
        """The head's weights of some tokens [num_tokens, hidden_size]; a copy."""
        return self.decoder.head_rows(tokens)

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
        """What passes that hold `num_pending` known rows cost; wider ones than measured in proportion."""
        known, branch_ms, top = self.clock.pass_ms, self.clock.branch_ms, max(self.widths)
        if num_pending <= max(ROWS, top - ROWS):
            wide = {width: ms for width, ms in known.items() if width >= num_pending}
            return Costs(wide, branch_ms, max_branches)
        slope = (known[top] - known[ROWS]) / max(1, top - ROWS)
        first = pad_rows(num_pending)
        pass_ms = {width: known[ROWS] + slope * (width - ROWS) for width in (first, first + ROWS)}
        return Costs(pass_ms, branch_ms, max_branches)

    def ms_of(self, num_rows: int) -> float:
        """Milliseconds of the cheapest pass that holds so many rows, as passes are now."""
        return self.costs_from(num_rows).ms_of(num_rows)

    def record(self, expected_ms: float, ms: float) -> None:
        """A pass that was expected to take `expected_ms`, by the figures of now, took `ms`."""
        self.governor.record(self.clock.record(expected_ms, ms), time.monotonic())

    @torch.inference_mode()
    def forward(
        self, tokens: Sequence[int], cache: KVCache, num_logits: int, parents: Sequence[int] | None = None
    ) -> Tensor:
        """Run `tokens` behind what is cached; logits [num_logits, vocab_size] of the last ones.

        `parents` [num_tokens] makes a tree of them: the row that each follows, -1 for the first. Without it
        each follows the one before. The cache's length is left as it is: `keep` what turns out to be true.
        """
        num_rows = pad_rows(len(tokens), self._row_step)
        chain = range(len(tokens) - 1, num_rows - 1)
        layout = lay_out([*(range(-1, len(tokens) - 1) if parents is None else parents), *chain])
        if cache.num_cached + max(layout.depths) >= cache.capacity:
            raise ValueError(f"{num_rows} rows do not fit behind {cache.num_cached} of {cache.capacity}")
        padding = [0] * (num_rows - len(tokens))
        rows = torch.tensor([*tokens, *padding])
        self.governor.apply(time.monotonic())
        caches = self._branches.open(cache, layout)
        # Where bits depend on how many rows run, the head runs all of them too, whatever is asked of it.
        num_before = 0 if self.is_row_invariant else len(tokens) - num_logits
        num_computed = num_before + num_logits + len(padding) if num_logits else 0
        logits = self.decoder.forward(rows, layout, caches, num_computed)
        return logits[num_before : num_before + num_logits] if num_logits else logits

    @torch.inference_mode()
    def keep(
        self, cache: KVCache, parents: Sequence[int], path: Sequence[int], tokens: Sequence[int]
    ) -> None:
        """Keep the rows `path` of the pass just run, whose tokens are `tokens`; `parents` as in `forward`."""
        self._branches.keep(cache, lay_out(parents), path, tokens)

    def _widths(self) -> tuple[int, ...]:
        """Rows of the passes that the policy may choose from."""
        if not self.is_row_invariant:
            return (ROWS,)
        return (*_NARROW, *WIDTHS) if self._row_step == 1 else WIDTHS

    def _chunk_rule(self) -> ChunkRule:
        """How prompts get into a cache."""
        if not self.is_row_invariant:
            return ChunkRule(PREFILL_ROWS, ROWS)
        return ChunkRule(PREFILL_ROWS if self.device.type == "cpu" else _PREFILL_ROWS_CUDA)

    def _fixed_width_holds(self) -> bool:
        """Whether passes of one width make drafts harmless; where not, there are none."""
        if fixed_width_holds(self, PREFILL_ROWS):
            return True
        logger.warning("What this target computes depends on what runs beside it: nothing is drafted.")
        return False

    def _measure_passes(self) -> PassClock:
        """One verification pass by width, the quickest of a few, and what a branch more takes, the median.

        A branch takes little beside what a pass varies by: it is measured by as many as there may be.
        """
        shapes = {width: list(range(-1, width - 1)) for width in self.widths}
        num_more = min(self.max_branches, ROWS) - 1
        if num_more:
            shapes[0] = [*range(-1, ROWS - 1 - num_more), *[0] * num_more]
        found = self._time_passes({shape: (parents, self.governor) for shape, parents in shapes.items()})
        with_branches = found.pop(0, found[ROWS])
        branch_ms = median(wide - row for wide, row in zip(with_branches, found[ROWS], strict=True))
        pass_ms = {width: min(taken) for width, taken in found.items()}
        return PassClock(pass_ms, branch_ms / max(1, num_more))

    def _choose_threads(self) -> ThreadGovernor:
        """As many threads as torch was given, and fewer for when others need the cores; each with its pace.

        Only those of now where the number of threads would change a bit.
        """
        used = torch.get_num_threads()
        counts = {used, *thread_counts()} if self.device.type == "cpu" else {used}
        governors = {count: ThreadGovernor({count: 1.0}) for count in sorted(counts, reverse=True)}
        if not all(self._threads_agree(governors[used], governors[count]) for count in counts - {used}):
            return governors[used]
        if used < max(counts):
            # Others need the cores now: what more threads are worth is seen when they are free.
            return ThreadGovernor({count: used / count for count in counts}, num_threads=used)
        parents = range(-1, ROWS - 1)
        found = self._time_passes({count: (parents, governor) for count, governor in governors.items()})
        return ThreadGovernor({count: min(taken) / min(found[used]) for count, taken in found.items()})

    def _threads_agree(self, governor: ThreadGovernor, other: ThreadGovernor) -> bool:
        """Whether two numbers of threads give the same bits, for narrow passes and for wide ones."""
        generator = torch.Generator().manual_seed(2)
        tokens = torch.randint(0, self.vocab_size, (PREFILL_ROWS + ROWS,), generator=generator).tolist()
        known, new = tokens[:PREFILL_ROWS], tokens[PREFILL_ROWS:]
        found: list[tuple[Tensor, KVCache]] = []
        for some in (governor, other):
            self.governor = some
            cache = KVCache(self.cache_shape)
            self.forward(known, cache, 0)
            cache.keep(known)
            found.append((self.forward(new, cache, ROWS), cache))
        (logits, cache), (others, other_cache) = found
        return hold_same(cache, other_cache, len(tokens)) and torch.equal(logits, others)

    def _time_passes(
        self, passes: Mapping[int, tuple[Sequence[int], ThreadGovernor]]
    ) -> dict[int, list[float]]:
        """Milliseconds of some passes, each given by parents and threads, in turn, until each came twice."""
        cache = KVCache(self.cache_shape)
        cache.keep([0] * min(512, self.capacity // 2))
        times: dict[int, list[float]] = {name: [] for name in passes}
        for num_done in range(_NUM_ROUNDS + 1):
            for name, (parents, governor) in passes.items():
                self.governor = governor
                begin = time.perf_counter()
                logits = self.forward([0] * len(parents), cache, len(parents), parents)
                logits[0, 0].item()
                if num_done:  # the first round makes things ready
                    times[name].append((time.perf_counter() - begin) * 1e3)
            if num_done > 1 and all(_came_twice(taken) for taken in times.values()):
                break
        return times


def _came_twice(taken: Sequence[float]) -> bool:
    """Whether the quickest two of some times are alike."""
    quickest, second = sorted(taken)[:2]
    return second < _ALIKE * quickest
