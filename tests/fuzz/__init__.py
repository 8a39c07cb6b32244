"""Hostile inputs of many kinds, each with its own oracle: `python -m tests.fuzz`."""
