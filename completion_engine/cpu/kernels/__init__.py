"""The computation of a pass on the CPU, as kernels that numba compiles for this machine.

In torch without compilation a layer needs some sixty small operations beside its products, and each call
costs several times its computation. Here they are a handful of loops over numpy's views of torch's memory.
Products of bytes and attention are kernels of their own, shared among threads. All treat each row alone and
in the same order, independent of other rows.
"""
