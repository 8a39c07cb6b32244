"""What a pass does between its products on the CPU, as loops that numba compiles for this machine.

A pass needs some sixty small operations a layer beside its four products, and in eager torch each costs
several times what it computes. Here they are a handful of loops over numpy's views of torch's memory. A loop
treats each row alone and in the same order, whatever stands beside it.
"""
