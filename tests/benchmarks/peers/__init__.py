"""Slipstream beside other ways to run the same model: same prompts, same machine, one run, in turn.

Every peer continues the very same token ids and is timed in the same way (`runs`).
"""

from tests.benchmarks.peers.measure import FAMILIES, PeerOptions, measure_peers

__all__ = ["FAMILIES", "PeerOptions", "measure_peers"]
