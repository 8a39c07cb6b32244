"""Which rows of a drafted tree are true, found on the device: one small tensor, and nothing read back.

The same walk as `verification.verify`, for a whole table at once. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from completion_engine.gpu.passes import Packet


def accept(packet: Packet, picked: Tensor) -> Tensor:
    """The verdict [2 + 2 * num_rows] on a tree that was run; `picked` [num_rows] is what follows each row.

    The number of true rows, what the target writes behind the last of them, the true rows in order, and
    their tokens; entries behind the true ones mean nothing. A row is true where it and all rows on the way
    to it carry what was picked before them. Siblings differ, so at most one row of a depth is true.
    """
    rows = torch.arange(packet.num_rows, device=picked.device)
    parents = packet.ancestors.gather(1, (packet.depths - 1).clamp_min(0)[:, None])[:, 0]
    matches = (packet.tokens == picked[parents]) | (rows < packet.num_known)
    is_behind = rows[None, :] > packet.depths[:, None]
    is_true = (matches[packet.ancestors] | is_behind).all(1) & (rows < packet.num_used)
    last = torch.where(is_true, packet.depths, -1).argmax(0, keepdim=True)
    path = packet.ancestors.index_select(0, last)[0]
    return torch.cat([packet.depths[last] + 1, picked[last], path, packet.tokens[path]])


def sources(packet: Packet, verdict: Tensor) -> Tensor:
    """Which row each row is to be taken from so that the true ones stand in line, [num_rows]."""
    rows = torch.arange(packet.num_rows, device=verdict.device)
    return torch.where(rows < verdict[0], verdict[2 : 2 + packet.num_rows], rows)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict that was read back: the true rows, their tokens, and what the target writes behind them."""

    path: tuple[int, ...]
    tokens: tuple[int, ...]
    next_token: int

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Verdict:
        """From the numbers of `accept`."""
        num_true, next_token, *others = numbers
        half = len(others) // 2
        return cls(tuple(others[:num_true]), tuple(others[half : half + num_true]), next_token)
