"""How the levels and scales of blocks lie in memory, so that a program reads them in long runs.

A step is 128 inputs, in four runs of 32. `levels` is [num_planes, num_outputs, 32] bytes: for a program's
outputs, a plane is one line of bytes. A byte of the first planes holds an input of two runs, the low half
that of the first one. The planes after them hold the other bits, a byte those of one input of 8 runs
(levels of 5 bits) or 4 (6 bits). Levels of 8 bits are bytes, a plane for each run. Levels without floors
are raised, so that none is negative.

`scales` is [num_rows, num_outputs] words of 32 bits: for each step those of its scales, then those of its
floors. A word holds two float16 numbers, or four codes of 8 bits. After all steps of codes come their
units, a word with two float16 numbers for each super-block: the unit of the scales, then that of the
floors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.models.gguf_layout import BLOCK_SIZES
from completion_engine.target_model.gguf_blocks import QuantisedWeight, quantised

STEP = 128  # inputs; must be `kernels.blocks.STEP`
RUN = 32  # inputs; must be `kernels.blocks.RUN`
_STEPS_TOGETHER = 2  # steps of a super-block
_WHOLE = 8  # bits of levels that fill a byte
_LOW = 4  # bits of the first planes


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a weight: levels in `bits` bits, and a scale for each `block` of 16 or 32 inputs.

    A `block` of 0 is a weight in its own type (16 bits), or in bytes with a scale for each output (8 bits).
    """

    bits: int
    block: int = 0
    has_codes: bool = False
    has_floors: bool = False

    @classmethod
    def of(cls, weight: QuantisedWeight) -> Form:
        """The form that holds a file's weight as it is."""
        bits = (weight.highest - weight.lowest).bit_length()
        return cls(bits, weight.block_size, weight.codes is not None, weight.floors is not None)

    @property
    def zero(self) -> int:
        """The level that is stored for the number 0, without a floor."""
        return 0 if self.has_floors else 1 << (self.bits - 1)

    @property
    def per_word(self) -> int:
        """Scales of a word."""
        return 4 if self.has_codes else 2

    @property
    def num_words(self) -> int:
        """Words of a step."""
        return STEP // self.block // self.per_word * (2 if self.has_floors else 1)

    @property
    def runs_together(self) -> int:
        """Runs that share the bytes of a plane of the upper bits."""
        return _WHOLE // (self.bits - _LOW)

    def num_bytes(self, num_outputs: int, num_inputs: int) -> int:
        """Memory of a weight in blocks."""
        num_steps = -(-num_inputs // STEP)
        num_units = -(-num_steps // _STEPS_TOGETHER) if self.has_codes else 0
        num_runs = num_steps * STEP // RUN
        num_planes = num_runs if self.bits == _WHOLE else num_runs // 2
        if _LOW < self.bits < _WHOLE:
            num_planes += -(-num_runs // self.runs_together)
        return num_outputs * (num_planes * RUN + 4 * (num_steps * self.num_words + num_units))


@cache
def form_of_kind(kind: str) -> Form:
    """The form of the weights of a type that files have."""
    _, num_bytes = BLOCK_SIZES[kind]
    return Form.of(quantised(np.zeros((1, num_bytes), np.uint8), kind))


def pack_file(weight: QuantisedWeight, form: Form, device: torch.device) -> tuple[Tensor, Tensor]:
    """Levels and scales of a file's weight, on `device`."""

    def moved(numbers: np.ndarray[tuple[int, ...], np.dtype[np.generic]], dtype: torch.dtype) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers)).to(device).to(dtype)

    raised = moved(weight.levels.view(np.uint8), torch.uint8) + form.zero  # modulo 256
    kind = torch.int8 if form.has_codes else torch.float16
    held = weight.codes or weight
    words = words_of(moved(held.scales, kind), form)
    if form.has_floors and held.floors is not None:
        words = torch.cat([words, words_of(moved(held.floors, kind), form)], 1)
    units = None
    if weight.codes is not None:
        both = (weight.codes.units, weight.codes.floor_units)
        units = torch.stack([moved(part, torch.float16) for part in both], -1)
    return pack(raised, words, form, units)


def words_of(numbers: Tensor, form: Form) -> Tensor:
    """Numbers of blocks [num_outputs, num_blocks], float16 or int8, as words [num_steps, .., num_outputs].

    Blocks that a last step lacks get the number 0.
    """
    per_step = STEP // form.block
    whole = functional.pad(numbers, (0, -numbers.shape[1] % per_step))
    by_word = whole.view(len(numbers), -1, per_step // form.per_word, form.per_word).permute(1, 2, 0, 3)
    return by_word.contiguous().view(torch.int32)[..., 0]


def pack(levels: Tensor, words: Tensor, form: Form, units: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Levels and scales as the module says.

    levels [num_outputs, num_inputs] uint8 are raised, `words` [num_steps, num_words, num_outputs], and
    units [num_outputs, num_super_blocks, 2] float16.
    """
    whole = functional.pad(levels, (0, -levels.shape[1] % STEP))
    by_run = whole.view(len(levels), -1, RUN).transpose(0, 1)
    planes = [by_run.contiguous()]
    if form.bits < _WHOLE:
        low = by_run & 15
        planes = [low[0::2] | low[1::2] << _LOW]
    if _LOW < form.bits < _WHOLE:
        planes.append(_upper_planes(by_run >> _LOW, form))
    rows = [words.flatten(0, 1)]
    if units is not None:
        rows.append(units.transpose(0, 1).contiguous().view(torch.int32)[..., 0])
    return torch.cat(planes), torch.cat(rows)


def _upper_planes(upper: Tensor, form: Form) -> Tensor:
    """The upper bits of levels [num_runs, num_outputs, RUN], those of some runs in one plane."""
    together, width = form.runs_together, form.bits - _LOW
    missing = torch.zeros_like(upper[:1]).expand(-len(upper) % together, -1, -1)
    by_plane = torch.cat([upper, missing]).view(-1, together, *upper.shape[1:])
    planes = torch.zeros_like(by_plane[:, 0])
    for at in range(together):
        planes |= by_plane[:, at] << at * width
    return planes


def unpack(levels: Tensor, scales: Tensor, form: Form, num_inputs: int) -> Tensor:
    """The numbers [num_outputs, num_inputs] float32."""
    num_steps = -(-num_inputs // STEP)
    words = scales[: num_steps * form.num_words].view(num_steps, form.num_words, -1)
    units = scales[num_steps * form.num_words :]
    num_scale_words = STEP // form.block // form.per_word
    by_run = _levels_of(levels, form, num_steps * STEP // RUN)
    by_block = by_run.transpose(0, 1).reshape(by_run.shape[1], -1, form.block)
    found = by_block.float() - form.zero
    found *= _numbers(words[:, :num_scale_words], units, 0, form).T[..., None]
    if form.has_floors:
        found += _numbers(words[:, num_scale_words:], units, 1, form).T[..., None]
    return found.flatten(1)[:, :num_inputs]


def _levels_of(levels: Tensor, form: Form, num_runs: int) -> Tensor:
    """Raised levels [num_runs, num_outputs, RUN]."""
    if form.bits == _WHOLE:
        return levels
    first = levels[: num_runs // 2]
    low = torch.stack([first & 15, first >> _LOW], 1).flatten(0, 1)
    if form.bits == _LOW:
        return low
    width = form.bits - _LOW
    mask = (1 << width) - 1
    parts = [levels[len(first) :] >> at * width & mask for at in range(form.runs_together)]
    return low | torch.stack(parts, 1).flatten(0, 1)[:num_runs] << _LOW


def _numbers(words: Tensor, units: Tensor, at: int, form: Form) -> Tensor:
    """Scales (`at` 0) or floors (1), [num_blocks, num_outputs], of words [num_steps, .., num_outputs]."""
    kind = torch.int8 if form.has_codes else torch.float16
    numbers = words.contiguous()[..., None].view(kind).transpose(2, 3).flatten(0, 2).float()
    if not form.has_codes:
        return numbers
    of_block = units[..., None].contiguous().view(torch.float16)[..., at].float()
    return numbers * of_block.repeat_interleave(_STEPS_TOGETHER * STEP // form.block, 0)[: len(numbers)]
