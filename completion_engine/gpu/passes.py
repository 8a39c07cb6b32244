"""One pass: buffers that stay where they are, and its run as one captured graph or kernel by kernel.

A captured graph reads and writes fixed addresses, so all that changes from pass to pass stands in one small
tensor of integers. Has no access to weights or kernels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from completion_engine.target_model.decoder import Layout
from completion_engine.target_model.kv_cache import KVCache

HEADER = 8  # numbers before the tokens; must be `kernels.attention.HEADER`
ROW_BLOCK = 16  # rows that a product takes at least, as matrix instructions do
WIDTHS = (8, 16, 24, 32, 64, 128, 256)  # rows that a captured pass may have
logger = logging.getLogger(__name__)
Work = Callable[[], None]
_WARM_UPS = 2  # runs before a capture: kernels compile, libraries take their work space


@dataclass(frozen=True, slots=True)
class PassShape:
    """The shape of one captured graph."""

    num_rows: int
    is_tree: bool
    wants_logits: bool


def shape_for(layout: Layout, num_logits: int) -> PassShape:
    """The smallest shape that holds a pass. Raises ValueError where none does."""
    num_rows = len(layout.depths)
    width = next((width for width in WIDTHS if width >= num_rows), 0)
    if not width:
        raise ValueError(f"{num_rows} rows are more than the {WIDTHS[-1]} of the widest pass")
    return PassShape(width, len(layout.branches) > 1, num_logits > 0)


@dataclass(frozen=True, slots=True)
class PassInputs:
    """The one input of a pass, int64 on the device; `numbers` is what kernels read.

    Addresses of keys, values and hidden states; the position of the first row; the number of rows in use;
    spare numbers up to `HEADER`; then tokens [num_rows], depths [num_rows] and, for a tree, ancestors
    [num_rows, num_rows]: the row that stands at each depth on the way to a row, itself included.
    """

    numbers: Tensor
    num_rows: int
    is_tree: bool

    @classmethod
    def empty(cls, shape: PassShape, device: torch.device) -> PassInputs:
        """Inputs of the shape's size, without rows."""
        size = HEADER + 2 * shape.num_rows + (shape.num_rows**2 if shape.is_tree else 0)
        return cls(torch.zeros(size, dtype=torch.int64, device=device), shape.num_rows, shape.is_tree)

    def fill(self, rows: Sequence[int], layout: Layout, cache: KVCache) -> None:
        """Set the next pass: `rows` [<= num_rows] token ids as `layout` places them, after `cache`.

        Does not wait for the device.
        """
        idle = [0] * (self.num_rows - len(rows))
        addresses = [part.data_ptr() for part in (cache.keys, cache.values, cache.hidden)]
        numbers = [*addresses, cache.num_cached, len(rows)]
        numbers += [0] * (HEADER - len(numbers))
        numbers += [*rows, *idle, *layout.depths, *idle]
        if self.is_tree:
            numbers += ancestors_of(layout, self.num_rows)
        staged = torch.tensor(numbers)
        self.numbers.copy_(staged.pin_memory() if self.numbers.is_cuda else staged, non_blocking=True)


def ancestors_of(layout: Layout, num_rows: int) -> list[int]:
    """The table of `PassInputs`, row by row; entries deeper than a row are 0."""
    table: list[int] = []
    for branch in layout.branches:
        for row in range(branch.first, branch.end):
            path = branch.path[: layout.depths[row] + 1]
            table += [*path, *[0] * (num_rows - len(path))]
    return table + [0] * (num_rows * (num_rows - len(layout.depths)))


@dataclass(slots=True)
class DeviceArena:
    """Work space that all shapes share, since passes run one after the other.

    A buffer is made the first time it is asked for, as large as the widest pass needs, and never moves.
    """

    device: torch.device
    max_rows: int
    _flat: dict[str, Tensor] = field(default_factory=dict)

    def rows(self, name: str, num_rows: int, row_shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """[num_rows, *row_shape], the same memory for every number of rows."""
        size = 1
        for length in row_shape:
            size *= length
        most = -(-self.max_rows // ROW_BLOCK) * ROW_BLOCK  # products read whole blocks of rows
        if name not in self._flat:
            self._flat[name] = torch.zeros(most * size, dtype=dtype, device=self.device)
        flat = self._flat[name]
        if flat.numel() != most * size or flat.dtype != dtype:
            raise ValueError(f"the buffer {name} is asked for in two sizes")
        return flat[: num_rows * size].view(num_rows, *row_shape)


class Runner:
    """Runs work that reads and writes fixed buffers only, so that doing it twice changes nothing.

    On CUDA it captures work the first time and replays it from then on. Where that fails, and elsewhere, it
    runs kernel by kernel. While it `captures`, a first run takes seconds, and no request should wait for it.
    """

    def __init__(self, device: torch.device) -> None:
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None
        self.captures = device.type == "cuda"

    def run(self, key: Hashable, work: Work) -> None:
        """Do `work`; the same key always comes with the same work."""
        graph = self._graphs.get(key)
        if graph is None and self.captures:
            graph = self._captured(key, work)
        if graph is None:
            work()
        else:
            graph.replay()

    def _captured(self, key: Hashable, work: Work) -> torch.cuda.CUDAGraph | None:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                work()
        except RuntimeError as error:
            logger.warning("CUDA graphs cannot be captured here; passes will be slower: %s", error)
            self.captures = False
            return None
        self._pool = graph.pool()
        self._graphs[key] = graph
        return graph
