"""Verified completions from a local model: text and limits in, verified text out."""

import os

# Threads that wait for work sleep instead of spinning. On cores shared with an editor and its builds a
# spinning wait made a pass three times slower (docs/experiments.md). Has to stand before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
