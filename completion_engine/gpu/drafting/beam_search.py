"""A distilled drafter on a GPU: the search for the likeliest paths is one graph, and is read back once.

The paths are those of `drafter.DistilledDrafter`; the device chooses which of them go on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from completion_engine.drafting.distilled.drafter import NUM_BEAMS, TrainedDrafter, append_guesses
from completion_engine.drafting.drafts import Allowed, Draft, DraftToken
from completion_engine.gpu.drafting.network import DeviceNetwork
from completion_engine.gpu.launch_draft import Found, run_choose_beams, run_find_best
from completion_engine.gpu.passes import Runner, runner_for
from completion_engine.target_model.kv_cache import KVCache

BREADTH = 4  # number of tokens after each path
_TIMED_DRAFTS = 5


@dataclass(frozen=True, slots=True)
class Guesses:
    """The result of a search: tokens and shares [num_depths, num_beams, breadth], best first for each beam.

    chosen [num_depths, num_beams]: beam * breadth + rank of those that go on, the next depth's beams.
    """

    tokens: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float32]
    chosen: npt.NDArray[np.int64]


class BeamSearch:
    """The likeliest paths after a token, as deep as there are temperatures."""

    def __init__(self, network: DeviceNetwork, temperatures: Sequence[float]) -> None:
        self.network = network
        self._temperatures = tuple(temperatures)
        self._size = (len(self._temperatures), network.num_beams, BREADTH)
        self._num_found, self._num_chosen = int(np.prod(self._size)), int(np.prod(self._size[:2]))
        num_shares = -(-self._num_found // 2)  # in eight bytes lie two
        length = self._num_found + self._num_chosen + num_shares
        self._record = torch.zeros(length, dtype=torch.int64, device=network.device)
        self.found = Found(*self._parts_of(self._record))

    @property
    def num_depths(self) -> int:
        """Tokens of the longest path."""
        return self._size[0]

    def compute(self) -> None:
        """The search from the network's inputs and its first state; to be captured."""
        network = self.network
        for depth, temperature in enumerate(self._temperatures):
            network.compute(depth, is_first=depth == 0)
            at = self.found
            found = Found(at.tokens[depth], at.shares[depth], at.chosen[depth])
            run_find_best(network.logits, network.ids, temperature, found)
            run_choose_beams(found, network.beams, is_first=depth == 0)

    def read(self) -> Guesses:
        """What was found: one small copy, which waits for the device."""
        tokens, shares, chosen = self._parts_of(self._record.cpu())
        return Guesses(tokens.numpy(), shares.numpy(), chosen.numpy())

    def _parts_of(self, record: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens, shares and chosen places in one block of memory, so that one copy fetches them."""
        num_found, num_chosen = self._num_found, self._num_chosen
        shares = record[num_found + num_chosen :].view(torch.float32)[:num_found]
        chosen = record[num_found : num_found + num_chosen]
        return record[:num_found].view(self._size), shares.view(self._size), chosen.view(self._size[:2])


class DeviceDrafter(TrainedDrafter):
    """Guesses from the target's own last state and from what one of its layers has cached, by `search`."""

    def __init__(self, search: BeamSearch, timed_on: KVCache, runner: Runner | None = None) -> None:
        """`timed_on` is a cache of the target's shape whose contents do not matter."""
        super().__init__(search.network.num_bytes, timed_on)
        self.search, self._network = search, search.network
        self._runner = runner or runner_for(search.network.device)
        self.step_ms = self._measure()

    @torch.inference_mode()
    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:
        """See `Drafter.drafts`. Guesses nothing after an empty cache or a long run of uncached tokens."""
        uncached = self._uncached()
        end = self._cache.num_cached + len(uncached) + self.search.num_depths
        if not uncached or max_tokens < 1 or end > self._cache.capacity:
            return []
        self._look(uncached)
        tree = _tree(self.search.read(), max_tokens, allowed, min_probability)
        return [tuple(tree)] if tree else []

    def _look(self, uncached: Sequence[int]) -> None:
        """Run the search after the tokens `uncached`, which are not cached yet."""
        network, num_cached = self._network, self._cache.num_cached
        network.first.copy_(self._cache.hidden[num_cached - 1 : num_cached])
        for num_ahead, token in enumerate(uncached):
            network.fill(self._cache, num_ahead, token)
            if num_ahead + 1 < len(uncached):
                self._runner.run("known", self._take_in)
                network.first.copy_(network.states[:1])
        self._runner.run("search", self.search.compute)

    def _take_in(self) -> None:
        self._network.compute(0, is_first=True, wants_logits=False)

    @torch.inference_mode()
    def _measure(self) -> float:
        """Milliseconds of one depth of a draft, the quickest of a few drafts."""
        cache = self._cache
        num_cached = cache.num_cached
        cache.keep([0] * (cache.capacity // 2 - num_cached))
        times = []
        self._look([0, 0])  # whatever is captured is captured now
        for _ in range(_TIMED_DRAFTS):
            begin = time.perf_counter()
            self._look([0])
            self.search.read()
            times.append((time.perf_counter() - begin) * 1e3)
        cache.rewind(num_cached)
        return min(times) / self.search.num_depths


def _tree(guesses: Guesses, max_tokens: int, allowed: Allowed, min_probability: float) -> list[DraftToken]:
    """The guesses as a tree, without the paths that begin with what is not allowed."""
    tree: list[DraftToken] = []
    beams = [(-1, 1.0), *[(-1, 0.0)] * (NUM_BEAMS - 1)]  # place in the tree, acceptance probability
    for depth, chosen in enumerate(guesses.chosen[:max_tokens]):
        found = [
            list(zip(shares, tokens, strict=True)) if survival and survival >= min_probability else []
            for (_, survival), shares, tokens in zip(
                beams, guesses.shares[depth].tolist(), guesses.tokens[depth].tolist(), strict=True
            )
        ]
        if not depth:
            found[0] = _allowed_of(found[0], allowed)
        grown = append_guesses(tree, beams, found, depth)
        if not grown:
            break
        beams = [grown.get(divmod(place, BREADTH), (-1, 0.0)) for place in chosen.tolist()]
    return tree


def _allowed_of(found: Sequence[tuple[float, int]], allowed: Allowed) -> list[tuple[float, int]]:
    """Shares of what is allowed alone; the others keep their places and have none."""
    kept = [share if allowed(token) else 0.0 for share, token in found]
    total = sum(kept) or 1.0
    is_free = all(kept)  # then nothing is ruled out, nor among those that were not looked at
    return [
        (share if is_free else share / total, token) for share, (_, token) in zip(kept, found, strict=True)
    ]
