"""Composes an engine: the model, its drafters, kernels compiled in advance."""
