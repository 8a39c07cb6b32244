"""Weights as the kernels read them: in their own type, in bytes, or in halves of bytes.

Owns the rounding and the packing. Rounding touches weights alone; inputs and sums stay as they are, so in
every kind a row's result is the same beside any number of rows. Has no access to kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from completion_engine.errors import UserError

Bits = Literal[16, 8, 4]
GROUP = 128  # inputs that share a scale in 4 bits
_MAX_BYTE, _MAX_NIBBLE = 127, 7
_SHRINKS = tuple(1.0 - 0.025 * step for step in range(13))  # factors of a group's scale; the best is kept
_SMALLEST_SCALE = 1e-12
_OUTPUTS_AT_ONCE = 2048  # being rounded, so that float32 copies stay small


@dataclass(frozen=True, slots=True)
class Weight:
    """A matrix [num_outputs, num_inputs].

    `levels` holds it in 16 bits or more as it is; in 8 bits as int8 of that shape, with float32 `scales`
    [num_outputs]; in 4 bits as uint8 [num_outputs, num_inputs / 2] with `scales` [num_outputs, num_groups].
    A byte's low half is an input's level plus 8, its high half that of the input half a group on.
    """

    levels: Tensor
    scales: Tensor | None
    bits: Bits
    num_outputs: int
    num_inputs: int
    group: int = GROUP

    @property
    def num_bytes(self) -> int:
        """Memory that a pass reads."""
        return self.levels.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def dense(self, dtype: torch.dtype) -> Tensor:
        """The numbers of the levels, [num_outputs, num_inputs]."""
        if self.scales is None:
            return self.levels.to(dtype)
        if self.bits == 8:
            return (self.levels.float() * self.scales[:, None]).to(dtype)
        halves = self.levels.view(len(self.levels), -1, self.group // 2).int()
        levels = torch.cat([(halves & 15) - 8, (halves >> 4) - 8], -1)
        return (levels * self.scales[..., None]).flatten(1).to(dtype)

    def rows(self, outputs: Tensor) -> Weight:
        """The weights of some outputs [num_rows]; a copy."""
        scales = None if self.scales is None else self.scales[outputs]
        return replace(self, levels=self.levels[outputs], scales=scales, num_outputs=len(outputs))


def head_bits(bits: Bits) -> Bits:
    """Return the bits of the head, and of a trained drafter, beside layers held in `bits`."""
    return 8 if bits == 4 else bits


def hold(weight: Tensor, bits: Bits = 16, group: int = GROUP) -> Weight:
    """`weight` [num_outputs, num_inputs] in `bits` bits, on its device.

    Raises UserError where the inputs do not make whole groups.
    """
    weight = weight.detach()
    num_outputs, num_inputs = weight.shape
    if bits == 16:
        return Weight(weight.contiguous(), None, 16, num_outputs, num_inputs, group)
    if bits == 4 and num_inputs % group:
        raise UserError(
            f"Weights with {num_inputs} inputs cannot be held in 4 bits: {group} inputs share a scale.",
            advice="Set dtype to int8 or auto.",
        )
    round_part = _in_bytes if bits == 8 else _in_nibbles
    parts = [round_part(part.float(), group) for part in torch.split(weight, _OUTPUTS_AT_ONCE)]
    levels, scales = (torch.cat(found) for found in zip(*parts, strict=True))
    return Weight(levels, scales, bits, num_outputs, num_inputs, group)


def _in_bytes(weight: Tensor, _group: int) -> tuple[Tensor, Tensor]:
    scales = (weight.abs().amax(-1) / _MAX_BYTE).clamp_min(_SMALLEST_SCALE)
    return (weight / scales[:, None]).round().to(torch.int8), scales


def _in_nibbles(weight: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """Levels -8 to 7. The scale is the one of a few that leaves the smallest squared error in its group."""
    grouped = weight.view(len(weight), -1, group)
    widest = (grouped.abs().amax(-1, keepdim=True) / _MAX_NIBBLE).clamp_min(_SMALLEST_SCALE)
    best_scale, best_error = widest, torch.full_like(widest, float("inf"))
    for shrink in _SHRINKS:
        scale = widest * shrink
        error = ((grouped / scale).round().clamp(-8, 7) * scale - grouped).square().sum(-1, keepdim=True)
        is_better = error < best_error
        best_scale, best_error = torch.where(is_better, scale, best_scale), torch.minimum(error, best_error)
    levels = (grouped / best_scale).round().clamp(-8, 7).to(torch.uint8) + 8 & 15
    low, high = levels.chunk(2, -1)
    return (low | high << 4).flatten(1), best_scale.squeeze(-1)
