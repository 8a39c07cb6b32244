"""What a pass computes on the CPU, as kernels that numba compiles for this machine.

In eager torch a layer needs some sixty small operations beside its products, each of which costs several
times what it computes; here they are a handful of loops over numpy's views of torch's memory. Products of
bytes and attention are kernels of their own, shared among threads. All treat each row alone and in
the same order, whatever stands beside it.
"""
