"""A whole step of drafted greedy decoding on the device: draft, verify, accept, move into line, in one graph.

The host reads one small tensor a step and sends nothing: what the next step starts from stays on the device.
Drafts come from a distilled drafter alone, in a tree of fixed shape. Knows nothing of text and of policy.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from completion_engine.attention import pad_rows
from completion_engine.drafting.device_beams import BREADTH, BeamSearch
from completion_engine.gpu import launch
from completion_engine.gpu.accept import Verdict, accept, sources
from completion_engine.gpu.decoder import GraphedDecoder
from completion_engine.gpu.passes import Packet, PassShape
from completion_engine.gpu.runner import Runner, runner_for
from completion_engine.kv_cache import KVCache
from completion_engine.lanes import lay_out


@dataclass(frozen=True, slots=True)
class Comb:
    """A tree with one path of likeliest tokens, and beside each of them the next best few.

    `num_beside[depth]` counts those, at most three. Row 0 is the last written token, then come the path and
    the others.
    """

    num_beside: tuple[int, ...]

    @property
    def parents(self) -> list[int]:
        """The row that each row follows, as in `LanguageModel.forward`."""
        path = range(-1, len(self.num_beside))
        return [*path, *(depth for depth, count in enumerate(self.num_beside) for _ in range(count))]

    @property
    def places(self) -> list[int]:
        """Where the tokens of all rows but the first stand in a search's, depth * BREADTH + rank."""
        path = [depth * BREADTH for depth in range(len(self.num_beside))]
        beside = [
            place + 1 + at for place, count in zip(path, self.num_beside, strict=True) for at in range(count)
        ]
        return path + beside


COMB = Comb((3, 2, 1, 1, 1, 0, 0))  # 16 rows; not tuned on a GPU yet


class DeviceLoop:
    """Greedy decoding of one cache after the other. All calls belong to one thread."""

    def __init__(
        self,
        decoder: GraphedDecoder,
        search: BeamSearch,
        num_tokens: int,
        comb: Comb = COMB,
        runner: Runner | None = None,
    ) -> None:
        """`search` follows one beam, as deep as `comb`; `num_tokens` are what the target may write."""
        self._decoder, self._search, self._num_tokens = decoder, search, num_tokens
        self._layout = lay_out(comb.parents)
        shape = PassShape(pad_rows(len(comb.parents)), is_tree=True, wants_logits=True)
        self._buffers = decoder.buffers(shape)
        device = decoder.embedding.device
        self._places = torch.tensor(comb.places, device=device)
        told, states = self._buffers.packet.told, self._buffers.normed
        self._before = (torch.zeros_like(told), torch.zeros_like(states[:1]))  # what a step starts from
        self._after = (torch.zeros_like(told), torch.zeros_like(states[:1]))
        self._verdict = torch.zeros(2 + 2 * shape.num_rows, dtype=torch.int64, device=device)
        self._runner = runner or runner_for(device)

    @torch.inference_mode()
    def begin(self, cache: KVCache, last: int) -> None:
        """Start behind `cache`, which holds at least one token, and the token `last`, which it does not."""
        packet, num_rows = self._buffers.packet, len(self._layout.depths)
        packet.tell([last] + [0] * (num_rows - 1), self._layout, cache)
        self._before[0].copy_(packet.told)
        self._before[1].copy_(cache.hidden[cache.num_cached - 1])

    @torch.inference_mode()
    def step(self) -> Verdict:
        """One pass of the target. The verdict's rows are in the cache, in line; the caller keeps them."""
        self._runner.run("step", self._work)
        for before, after in zip(self._before, self._after, strict=True):
            before.copy_(after)
        return Verdict.of(self._verdict.tolist())

    def write(self, cache: KVCache, last: int, num_tokens: int) -> list[int]:
        """At least `num_tokens` tokens behind `last`, as far as the cache has room."""
        self.begin(cache, last)
        written: list[int] = []
        while len(written) < num_tokens and (more := self.proceed(cache)):
            written += more
        return written

    def proceed(self, cache: KVCache) -> list[int]:
        """The tokens that one more step writes; none without room. `cache` is that of `begin`."""
        if cache.num_cached + len(self._layout.depths) > cache.capacity:
            return []
        verdict = self.step()
        cache.keep(verdict.tokens)
        return [*verdict.tokens[1:], verdict.next_token]

    def _work(self) -> None:
        """From `_before` to `_after` and the verdict: the same work every time, to be captured."""
        at, (told, state) = self._buffers, self._before
        packet = at.packet
        packet.told.copy_(told)
        packet.tokens[1 : len(self._layout.depths)] = self._drafted(packet, state)
        self._decoder.compute(at, wants_logits=True)
        picked = at.logits[:, : self._num_tokens].max(-1).indices
        self._verdict.copy_(accept(packet, picked))
        launch.run_move_rows(
            packet, sources(packet, self._verdict), self._decoder.heads, self._decoder.num_layers, at.normed
        )
        num_true = self._verdict[:1]
        last_row = self._verdict[2:].index_select(0, num_true - 1)
        self._after[1].copy_(at.normed.index_select(0, last_row))
        packet.start.add_(num_true)
        packet.tokens[:1] = self._verdict[1:2]
        self._after[0].copy_(packet.told)

    def _drafted(self, packet: Packet, state: Tensor) -> Tensor:
        """The tokens of all rows but the first."""
        network = self._search.network
        network.follow(packet)
        network.states.copy_(state)
        self._search.compute()
        return self._search.tokens.flatten().index_select(0, self._places)
