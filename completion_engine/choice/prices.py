"""The limits of a model's cost: the choice's measured constants, with their sources.

Plain numbers.
"""

from __future__ import annotations

BUDGET_P95_MS = 120.0
"""95 % of warm answers come within this. A suggestion that comes later meets the next key: fast typists leave
120 to 180 ms between two."""

PASSES_AT_P95 = 2.6
"""How many passes of `JUDGED_ROWS` rows the answer takes that 95 % of warm answers are quicker than, with no
trained drafter: `slipstream replay` of the 1.5B on two shared Zen 4 cores, p95 175 ms at 67 ms a pass."""

PASSES_AT_P95_DRAFTED = 2.2
"""The same with a trained drafter: `slipstream replay` of the 1.5B there, p95 104 ms at 48 ms a pass. In
modules of recent releases, where less is repeated, it is 141 ms (docs/measurements.md)."""

JUDGED_ROWS = 8
"""Rows of the pass that a model is judged by: what verifies a usual draft, and what keys typed since add."""

HEADROOM_BYTES = 1_500_000_000
"""Memory that is left free: libraries take 0.7 GB before the first weight, ten million indexed tokens 0.1."""

NUM_CACHES = 7
"""Caches that an engine may hold: those of six places, and one for work beside them."""

PACKED_SHARE = 0.4
"""Size of packed weights in that of bf16, where a catalogue entry does not say it: 0.50 of 1.26 GB (0.5B)."""

DISK_MARGIN_BYTES = 200_000_000
"""What fetching a model leaves free on the disk."""

TRUSTED_LOADS = 3
"""A model's own passes speak alone from so many loads on. Before that a slow measurement may be the machine's
bad moment, and the passes of another model, scaled by size, are heard too."""

RECENT_LOADS = 5
"""Of so many last loads the quickest speaks: other programs make passes slower, nothing makes them
quicker."""
