"""The target on a CUDA device: our own kernels, static buffers, one captured graph for each shape of pass."""
