"""Faults of a GPU, injected one at a time into an engine in miniature."""
