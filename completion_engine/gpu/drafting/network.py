"""A distilled drafter's network on our kernels for GPUs: one step of a few beams over static buffers.

Computes what `drafter_network.DistilledNetwork` computes, without plain torch between the products, so that
steps can be captured in one graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from completion_engine.drafting.distilled.drafter import DrafterFiles
from completion_engine.drafting.distilled.drafter_network import EPS
from completion_engine.gpu import launch, launch_draft
from completion_engine.gpu.decoder import GraphedDecoder
from completion_engine.gpu.passes import HEADER, ROW_BLOCK, PassInputs, PassShape, header_of
from completion_engine.gpu.weights import TiledWeight, head_bits, hold
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

_SEES_CACHED = -1  # depth of a query that sees what is cached and nothing of its own


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

    def follow(self, inputs: PassInputs) -> None:
        """The same on the device: the first step starts from the first row of a pass; to be captured."""
        self.inputs.numbers[:4] = inputs.numbers[:4]
        self.inputs.numbers[5:HEADER] = inputs.numbers[5:HEADER]
        self.inputs.tokens[:] = inputs.tokens[:1]

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
