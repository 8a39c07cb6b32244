"""Results of a load's measurements of a target, for later loads. Plain values.

Bits and paces follow from the weights, the kernels and the processor; who stores findings names these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Findings:
    """The strategy that keeps drafts from changing the text, and the costs of passes.

    `pass_ms` by width, as measured with `num_threads`, and `chunk_ms` of a whole chunk of a prompt, 0 where
    that is unknown; `thread_paces` by number of threads, as for `ThreadGovernor`. They `are_settled` where
    nothing disturbed the measurement.
    """

    is_row_invariant: bool
    verifies_drafts: bool
    verifies_trees: bool
    pass_ms: Mapping[int, float]
    branch_ms: float
    thread_paces: Mapping[int, float]
    chunk_ms: float = 0.0
    are_settled: bool = False
