"""Builds an engine: loads the model and its drafters, and compiles kernels in advance."""
