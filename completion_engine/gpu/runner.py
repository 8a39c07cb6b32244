"""Runs a pass: as one captured CUDA graph for each shape, or kernel by kernel without CUDA."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import torch

logger = logging.getLogger(__name__)

Work = Callable[[], None]
_WARM_UPS = 2  # runs before a capture: kernels compile, libraries take their work space


class Runner(Protocol):
    """Runs work that reads and writes fixed buffers only, so that doing it twice changes nothing."""

    @property
    def captures(self) -> bool:
        """Whether the first run takes long, so that no request should wait for it."""
        ...

    def run(self, key: Hashable, work: Work) -> None:
        """Do `work`; the same key always comes with the same work."""
        ...


class EagerRunner:
    """Does the work as it is written."""

    captures = False

    def run(self, key: Hashable, work: Work) -> None:  # noqa: ARG002 - see `Runner`
        """See `Runner.run`."""
        work()


class GraphRunner:
    """Captures work the first time and replays it from then on. If that fails, it runs kernel by kernel."""

    def __init__(self) -> None:
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None
        self.captures = True

    def run(self, key: Hashable, work: Work) -> None:
        """See `Runner.run`. The first time takes the compilation of the kernels, seconds."""
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


def runner_for(device: torch.device) -> Runner:
    """Graphs where there is CUDA."""
    return GraphRunner() if device.type == "cuda" else EagerRunner()
