"""Weights as the kernels read them: in their own type, in bytes, or in blocks of levels as files hold them.

Rounds weights that come as plain numbers. Touches weights alone; inputs and sums stay as they are, so in
every form a row's result is the same beside any number of rows. Has no access to kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from completion_engine.gpu import blocks
from completion_engine.gpu.blocks import RUN, Form
from completion_engine.target_model.gguf_blocks import QuantisedWeight
from completion_engine.target_model.llama_family import FamilyModel

Bits = Literal[16, 8, 4]  # the setting for weights that come as plain numbers
PLAIN, BYTES, NIBBLES = Form(16), Form(8), Form(4, RUN)
_FORMS: dict[Bits, Form] = {16: PLAIN, 8: BYTES, 4: NIBBLES}
_MAX_BYTE, _MAX_NIBBLE = 127, 7
_SHRINKS = tuple(1.0 - 0.025 * step for step in range(13))  # factors of a block's scale; the best is kept
_SMALLEST_SCALE = 1e-12
_SMALLEST_HALF = 2.0**-14  # the smallest float16 with all its digits
_OUTPUTS_AT_ONCE = 2048  # being rounded, so that float32 copies stay small


@dataclass(frozen=True, slots=True)
class Weight:
    """A matrix [num_outputs, num_inputs].

    `levels` holds it in 16 bits or more as it is, and in bytes as int8 of that shape, with float32 `scales`
    [num_outputs]. In blocks, levels and scales are laid out as in `gpu.blocks`.
    """

    levels: Tensor
    scales: Tensor | None
    form: Form
    num_outputs: int
    num_inputs: int

    @property
    def num_bytes(self) -> int:
        """Memory that a pass reads."""
        return self.levels.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def dense(self, dtype: torch.dtype) -> Tensor:
        """The numbers of the levels, [num_outputs, num_inputs]."""
        if self.scales is None:
            return self.levels.to(dtype)
        if self.form.block:
            return blocks.unpack(self.levels, self.scales, self.form, self.num_inputs).to(dtype)
        return (self.levels.float() * self.scales[:, None]).to(dtype)

    def rows(self, outputs: Tensor) -> Weight:
        """The weights of some outputs [num_rows]; a copy."""
        at = 1 if self.form.block else 0
        scales = None if self.scales is None else self.scales.index_select(-1, outputs)
        levels = self.levels.index_select(at, outputs)
        return replace(self, levels=levels, scales=scales, num_outputs=len(outputs))


def joined(weights: Sequence[Weight]) -> list[Weight]:
    """Weights that read the same inputs, in their order; those of one form that follow each other as one."""
    found: list[Weight] = []
    for weight in weights:
        if found and found[-1].form == weight.form:
            weight = _beside(found.pop(), weight)  # noqa: PLW2901 - takes the place of both
        found.append(weight)
    return found


def _beside(left: Weight, right: Weight) -> Weight:
    levels = torch.cat([left.levels, right.levels], 1 if left.form.block else 0)
    if left.scales is None or right.scales is None:
        scales = None
    else:
        scales = torch.cat([left.scales, right.scales], -1)
    return replace(left, levels=levels, scales=scales, num_outputs=left.num_outputs + right.num_outputs)


def head_bits(bits: Bits) -> Bits:
    """Return the bits of the head, and of a trained drafter, beside layers held in `bits`."""
    return 8 if bits == 4 else bits


def as_in_file(weight: QuantisedWeight, device: torch.device) -> Weight:
    """A weight with the levels and scales of its file, on `device`."""
    form = Form.of(weight)
    levels, scales = blocks.pack_file(weight, form, device)
    num_outputs, num_inputs = weight.levels.shape
    return Weight(levels, scales, form, num_outputs, num_inputs)


def read_weight(model: FamilyModel, index: int, part: str, bits: Bits, device: torch.device) -> Weight:
    """A layer's weight, named as in `LayerParts`: as its file quantises it, otherwise in `bits`.

    With 16 bits it is the number that the file means.
    """
    found = model.quantised(index, (part,)) if bits < 16 else []
    return as_in_file(found[0], device) if found else hold(model.product(index, part).to(device), bits)


def read_head(model: FamilyModel, bits: Bits, device: torch.device) -> Weight:
    """The head beside layers held in `bits`, as its file quantises it, otherwise in 8 bits at most."""
    found = model.quantised_head if bits < 16 else []
    return as_in_file(found[0], device) if found else hold(model.head.to(device), head_bits(bits))


def hold(weight: Tensor, bits: Bits = 16) -> Weight:
    """`weight` [num_outputs, num_inputs] in `bits` bits, on its device."""
    weight = weight.detach()
    num_outputs, num_inputs = weight.shape
    if bits == 16:
        return Weight(weight.contiguous(), None, PLAIN, num_outputs, num_inputs)
    round_part = _in_bytes if bits == 8 else _in_nibbles
    rounded = [round_part(part.float()) for part in torch.split(weight, _OUTPUTS_AT_ONCE)]
    levels, scales = (torch.cat(found) for found in zip(*rounded, strict=True))
    if bits == 4:
        levels, scales = blocks.pack(levels, blocks.words_of(scales, NIBBLES), NIBBLES)
    return Weight(levels, scales, _FORMS[bits], num_outputs, num_inputs)


def _in_bytes(weight: Tensor) -> tuple[Tensor, Tensor]:
    scales = (weight.abs().amax(-1) / _MAX_BYTE).clamp_min(_SMALLEST_SCALE)
    return (weight / scales[:, None]).round().to(torch.int8), scales


def _in_nibbles(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Levels 0 to 15 for -8 to 7, and float16 scales by block.

    The scale is the one of a few that leaves the smallest squared error in its block.
    """
    whole = torch.nn.functional.pad(weight, (0, -weight.shape[1] % blocks.STEP))
    by_block = whole.view(len(weight), -1, RUN)
    widest = (by_block.abs().amax(-1, keepdim=True) / _MAX_NIBBLE).clamp_min(_SMALLEST_HALF)
    best_scale, best_error = widest.half().float(), torch.full_like(widest, float("inf"))
    for shrink in _SHRINKS:
        scale = (widest * shrink).half().float()
        error = ((by_block / scale).round().clamp(-8, 7) * scale - by_block).square().sum(-1, keepdim=True)
        is_better = error < best_error
        best_scale, best_error = torch.where(is_better, scale, best_scale), torch.minimum(error, best_error)
    levels = (by_block / best_scale).round().clamp(-8, 7) + 8
    return levels.to(torch.uint8).flatten(1), best_scale.squeeze(-1).half()
