"""A distilled drafter on a GPU: its network, one step of a few beams, and the search for the likeliest paths.

The paths are those of `distilled.DistilledDrafter`; the device chooses which of them go on. The network
computes what `drafter_network.DistilledNetwork` computes, without plain torch between the products, so that
the search is one graph, and is read back once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from completion_engine.drafting.distilled import (
    NUM_BEAMS,
    DrafterFiles,
    TrainedDrafter,
    append_guesses,
)
from completion_engine.drafting.drafter_network import EPS
from completion_engine.drafting.drafts import Allowed, Draft, DraftToken
from completion_engine.gpu import launch, launch_draft
from completion_engine.gpu.decoder import GraphedDecoder
from completion_engine.gpu.launch_draft import Found, run_choose_beams, run_find_best
from completion_engine.gpu.passes import (
    ROW_BLOCK,
    PassInputs,
    PassShape,
    Runner,
    header_of,
    runner_for,
)
from completion_engine.gpu.weights import TiledWeight, head_bits, hold
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

BREADTH = 4  # number of tokens after each path
_TIMED_DRAFTS = 5
_SEES_CACHED = -1  # depth of a query that sees what is cached and nothing of its own


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


class DeviceNetwork:
    """One drafter's weights beside the target whose embedding, head and cached keys it uses."""

    def __init__(
        self, files: DrafterFiles, target: LanguageModel, decoder: GraphedDecoder, num_beams: int
    ) -> None:
        """`decoder` is the target's. Raises UserError for another target than the drafter's."""
        files.shape.check_target(target)
        self.shape, self.num_beams = files.shape, num_beams
        self._decoder = decoder
        self.device, dtype = decoder.embedding.device, decoder.embedding.dtype
        w = {name: part.to(self.device, dtype) for name, part in files.weights.items()}
        self._vectors = {name: part for name, part in w.items() if part.ndim == 1}
        self.ids = files.tokens.to(self.device).long()
        self._join = self._tiled(torch.cat([w["embedding"], w["state"]], 1))
        self._query, self._attended = self._tiled(w["query"]), self._tiled(w["attended"])
        gate, up = w["gate_up"].chunk(2)
        self._gate, self._up = self._tiled(gate, is_whole=True), self._tiled(up, is_whole=True)
        self._down = self._tiled(w["down"])
        head = decoder.head.weight.rows(self.ids)  # rounded once, with the target's
        self._head = TiledWeight.of(head, launch.num_processors(self.device), is_whole=True)
        self._make_buffers(dtype)

    @property
    def num_bytes(self) -> int:
        """Memory of the weights that are the drafter's own, its part of the head among them."""
        parts = (
            self._join, self._query, self._attended, self._gate, self._up, self._down, self._head,
        )  # fmt: skip
        return sum(part.weight.num_bytes for part in parts)

    def fill(self, cache: KVCache, num_ahead: int, token: int) -> None:
        """What the first step starts from: a token `num_ahead` positions after the cached ones."""
        self._send(header_of(cache, cache.num_cached, self.num_beams, num_ahead), token)

    def _send(self, header: list[int], token: int) -> None:
        self.inputs.send([*header, *[token] * self.num_beams, *[_SEES_CACHED] * self.num_beams])

    def compute(self, depth: int, *, is_first: bool, wants_logits: bool = True) -> None:
        """One step, `depth` positions after the first token; at first from the inputs, later from `beams`.

        The first step starts from the state `first` [1, hidden_size], which stays as it is; new states and
        logits are in `states` and `logits`. The same work every time, to be captured.
        """
        w, decoder = self._vectors, self._decoder
        launch_draft.run_join_inputs(
            self.inputs,
            self.beams,
            (decoder.embedding, w["embedding_norm"]),
            (self.first if is_first else self.states, w["state_norm"]),
            EPS,
            self._inputs,
            is_first=is_first,
        )
        joined = self._parts_of(self._join, self._inputs)
        launch.run_add_and_norm(joined, w["attention_norm"], EPS, self._x, self._normed, is_first=True)
        queries = self._parts_of(self._query, self._normed)
        self._attend(queries, depth)
        attended = self._parts_of(self._attended, self._result.flatten(1))
        launch.run_add_and_norm(attended, w["mlp_norm"], EPS, self._x, self._normed)
        gate, up = self._gate, self._up
        launch.run_gated_product(gate.weight, up.weight, gate.tiles, self._normed, self._gated)
        lowered = self._parts_of(self._down, self._gated)
        launch.run_add_and_norm(lowered, w["output_norm"], EPS, self._x, self.states)
        if wants_logits:
            launch.run_product(self._head.weight, self._head.tiles, self.states, self.logits[None])

    def _attend(self, queries: Tensor, depth: int) -> None:
        cos, sin = self._decoder.rotary
        bias, heads = self._vectors["query_bias"], self._heads
        launch_draft.run_turn_queries(self.inputs, queries, bias, cos, sin, self._queries, depth)
        layer, scale = self.shape.memory_layer, heads.head_size**-0.5
        launch.run_attention(self.inputs, self._queries, heads, layer, scale, self._partial, self._result)

    def _parts_of(self, product: TiledWeight, x: Tensor) -> Tensor:
        """A product in parts [num_parts, num_beams, num_outputs]; x lies in a whole block of rows."""
        size = (product.num_parts, self.num_beams, product.weight.num_outputs)
        parts = self._flat[: size[0] * size[1] * size[2]].view(size)
        launch.run_product(product.weight, product.tiles, x, parts)
        return parts

    def _tiled(self, weight: Tensor, *, is_whole: bool = False) -> TiledWeight:
        held = hold(weight, head_bits(self._decoder.bits))
        return TiledWeight.of(held, launch.num_processors(self.device), is_whole=is_whole)

    def _make_buffers(self, dtype: torch.dtype) -> None:
        """Products read whole blocks of rows, so buffers hold one though few rows are used."""
        shape, num_beams = self.shape, self.num_beams

        def rows(*size: int) -> Tensor:
            """A tensor [num_beams, *size], with memory after it up to the end of a block."""
            return torch.zeros(ROW_BLOCK, *size, dtype=dtype, device=self.device)[:num_beams]

        self._heads = launch.DeviceHeads(
            shape.num_heads, shape.num_kv_heads, shape.head_size, self._decoder.heads.capacity
        )
        self.inputs = PassInputs.empty(PassShape(num_beams, is_tree=False, wants_logits=False), self.device)
        self._send([0, 0, 0, 0, num_beams, 0, 0, 0], 0)
        self.beams = launch_draft.Beams.empty(num_beams, self.device)
        self._inputs, self._gated = rows(2 * shape.hidden_size), rows(shape.mlp_size)
        self._x, self._normed, self.states = (rows(shape.hidden_size) for _ in range(3))
        self.first = torch.zeros(1, shape.hidden_size, dtype=dtype, device=self.device)
        self._queries, self._result = (rows(shape.num_heads, shape.head_size) for _ in range(2))
        self._partial = launch.Partial.empty(self._heads, num_beams, self.device)
        products = (self._join, self._query, self._attended, self._down)
        most = max(product.num_parts * product.weight.num_outputs for product in products)
        self._flat = torch.zeros(num_beams * most, device=self.device)
        self.logits = torch.zeros(num_beams, shape.num_tokens, device=self.device)
