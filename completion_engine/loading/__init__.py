"""Composing an engine: the model, its drafters, kernels compiled ahead."""
