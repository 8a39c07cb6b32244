"""The target: weights on a device, the forward pass, and the proof that its rows do not disturb each other.

With `tokenizer` the only module that knows transformers. Knows nothing of drafts or prompts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import median

import torch
from torch import Tensor

from completion_engine.attention import ROWS, pad_rows
from completion_engine.costs import Costs, PassClock
from completion_engine.decoder import Decoder
from completion_engine.kv_cache import CacheShape, KVCache
from completion_engine.lanes import Branches, Lanes, lay_out
from completion_engine.precision import Precision
from completion_engine.threads import Crew, thread_counts

PREFILL_ROWS = 64
_PREFILL_ROWS_CUDA = 256
_FAR = 1024  # positions; see `_rows_are_invariant`
_SMALL = (1, 3, 5, 2, 9)  # rows of passes that have to agree with a large one
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
        branches: Branches | None = None,
    ) -> None:
        """`branches` is where the decoder wants the rows of a tree; each branch in a lane by default."""
        self.decoder = decoder
        self.device = device
        self.precision = precision
        self.capacity = capacity
        self._keys_by_channel = device.type == "cpu" and branches is None
        self._branches = branches or Lanes(self.cache_shape)
        self.crew = Crew({torch.get_num_threads(): 1.0})
        self._row_step = decoder.row_step
        self.is_row_invariant = self._rows_are_invariant()
        if not self.is_row_invariant:
            self._row_step = ROWS
        self.verifies_trees = self.is_row_invariant and self._branches_are_exact()
        self.max_lanes = self._branches.max_lanes if self.verifies_trees else 1
        self.prefill_rows = PREFILL_ROWS if device.type == "cpu" else _PREFILL_ROWS_CUDA
        self.widths = self._widths()
        self.clock = self._measure_passes()
        self.crew = self._hire()
        self.crew.muster(time.monotonic())

    @property
    def pass_ms(self) -> dict[int, float]:
        """Milliseconds of a pass by width, as they are now."""
        return self.clock.pass_ms

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

    def costs_from(self, num_pending: int, max_lanes: int = 1) -> Costs:
        """What passes that hold `num_pending` known rows cost; wider ones than measured in proportion."""
        known, lane_ms, top = self.clock.pass_ms, self.clock.lane_ms, max(self.widths)
        if num_pending <= max(ROWS, top - ROWS):
            wide = {width: ms for width, ms in known.items() if width >= num_pending}
            return Costs(wide, lane_ms, max_lanes)
        slope = (known[top] - known[ROWS]) / max(1, top - ROWS)
        first = pad_rows(num_pending)
        pass_ms = {width: known[ROWS] + slope * (width - ROWS) for width in (first, first + ROWS)}
        return Costs(pass_ms, lane_ms, max_lanes)

    def ms_of(self, num_rows: int) -> float:
        """Milliseconds of the cheapest pass that holds so many rows, as passes are now."""
        return self.costs_from(num_rows).ms_of(num_rows)

    def saw(self, expected_ms: float, ms: float) -> None:
        """A pass that was expected to take `expected_ms`, by the figures of now, took `ms`."""
        self.crew.saw(self.clock.saw(expected_ms, ms), time.monotonic())

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
        self.crew.muster(time.monotonic())
        caches = self._branches.open(cache, layout)
        logits = self.decoder.forward(rows, layout, caches, num_logits + len(padding) if num_logits else 0)
        return logits[:num_logits]

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

    def _rows_are_invariant(self) -> bool:
        """Whether a position comes out bit for bit the same alone, in a chain and in a prefill chunk.

        Asked at the beginning, and behind so many keys that sums may run in parts. Where it does, the cache
        holds the same bits however it was filled, and a pass may have any width. Where it does not, every
        pass of decoding runs one fixed width, which keeps drafts from changing the text.
        """
        border = min(_FAR, self.capacity // 2)
        return self._steps_agree(0, PREFILL_ROWS) and self._steps_agree(border - ROWS, 3 * ROWS)

    def _steps_agree(self, start: int, num_tokens: int) -> bool:
        """Whether tokens behind `start` positions of noise come out the same in one pass and in small."""
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(0, self.vocab_size, (num_tokens,), generator=generator).tolist()
        together, apart = KVCache(self.cache_shape), KVCache(self.cache_shape)
        for stored, copied in ((together.keys, apart.keys), (together.values, apart.values)):
            noise = torch.randn(stored[:, :, :start].shape, generator=generator)
            stored[:, :, :start] = copied[:, :, :start] = noise.to(stored)
        together.keep([0] * start)
        apart.keep([0] * start)
        wanted = self.forward(tokens, together, num_tokens)
        found = []
        for first, end in pairwise([*accumulate(_SMALL, initial=0), num_tokens]):
            chunk = tokens[first:end]
            found.append(self.forward(chunk, apart, len(chunk)))
            apart.keep(chunk)
        return _hold_same(together, apart, start + num_tokens) and torch.equal(wanted, torch.cat(found))

    def _branches_are_exact(self) -> bool:
        """Whether a path gives the same bits in a branch of a tree as in a chain."""
        generator = torch.Generator().manual_seed(1)
        known = torch.randint(0, self.vocab_size, (PREFILL_ROWS - 3,), generator=generator).tolist()
        chain, tree = KVCache(self.cache_shape), KVCache(self.cache_shape)
        for cache in (chain, tree):
            self.forward(known, cache, 0)
            cache.keep(known)
        parents = [-1, 0, 1, 2, 3, 1, 5, 6, 0, 8, 9, 10]
        tokens = [row + 1 for row in range(len(parents))]
        logits = self.forward(tokens, tree, len(tokens), parents)
        path = [0, 1, 5, 6, 7]
        kept = [tokens[row] for row in path]
        wanted = self.forward(kept, chain, len(kept))
        self.keep(tree, parents, path, kept)
        chain.keep(kept)
        return _hold_same(tree, chain, tree.num_cached) and torch.equal(logits[path], wanted)

    def _measure_passes(self) -> PassClock:
        """One verification pass by width, the quickest of a few, and what a lane more takes, the median.

        A lane takes little beside what a pass varies by: it is measured by as many as there may be.
        """
        shapes = {width: list(range(-1, width - 1)) for width in self.widths}
        num_more = min(self.max_lanes, ROWS) - 1
        if num_more:
            shapes[0] = [*range(-1, ROWS - 1 - num_more), *[0] * num_more]
        found = self._time_passes({shape: (parents, self.crew) for shape, parents in shapes.items()})
        with_lanes = found.pop(0, found[ROWS])
        lane_ms = median(wide - row for wide, row in zip(with_lanes, found[ROWS], strict=True))
        pass_ms = {width: min(taken) for width, taken in found.items()}
        return PassClock(pass_ms, lane_ms / max(1, num_more))

    def _hire(self) -> Crew:
        """As many threads as torch was given, and fewer for when others need the cores; each with its pace.

        Only those of now where the number of threads would change a bit.
        """
        used = torch.get_num_threads()
        counts = {used, *thread_counts()} if self.device.type == "cpu" else {used}
        crews = {count: Crew({count: 1.0}) for count in sorted(counts, reverse=True)}
        if not all(self._threads_agree(crews[used], crews[count]) for count in counts - {used}):
            return crews[used]
        if used < max(counts):
            # Others need the cores now: what more threads are worth is seen when they are free.
            return Crew({count: used / count for count in counts}, num_threads=used)
        parents = range(-1, ROWS - 1)
        found = self._time_passes({count: (parents, crew) for count, crew in crews.items()})
        return Crew({count: min(taken) / min(found[used]) for count, taken in found.items()})

    def _threads_agree(self, crew: Crew, other: Crew) -> bool:
        """Whether two numbers of threads give the same bits, for narrow passes and for wide ones."""
        generator = torch.Generator().manual_seed(2)
        tokens = torch.randint(0, self.vocab_size, (PREFILL_ROWS + ROWS,), generator=generator).tolist()
        known, new = tokens[:PREFILL_ROWS], tokens[PREFILL_ROWS:]
        found: list[tuple[Tensor, KVCache]] = []
        for some in (crew, other):
            self.crew = some
            cache = KVCache(self.cache_shape)
            self.forward(known, cache, 0)
            cache.keep(known)
            found.append((self.forward(new, cache, ROWS), cache))
        (logits, cache), (others, other_cache) = found
        return _hold_same(cache, other_cache, len(tokens)) and torch.equal(logits, others)

    def _time_passes(self, passes: Mapping[int, tuple[Sequence[int], Crew]]) -> dict[int, list[float]]:
        """Milliseconds of some passes, each given by parents and threads, in turn, until each came twice."""
        cache = KVCache(self.cache_shape)
        cache.keep([0] * min(512, self.capacity // 2))
        times: dict[int, list[float]] = {name: [] for name in passes}
        for num_done in range(_NUM_ROUNDS + 1):
            for name, (parents, crew) in passes.items():
                self.crew = crew
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


def _hold_same(cache: KVCache, other: KVCache, end: int) -> bool:
    """Whether keys and values are the same bits up to position `end`."""
    same_keys = torch.equal(cache.keys[:, :, :end], other.keys[:, :, :end])
    return same_keys and torch.equal(cache.values[:, :, :end], other.values[:, :, :end])
