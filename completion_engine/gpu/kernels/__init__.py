"""Triton kernels. Their sums run in an order that only a row's own position and the weights' shape decide.

Imported only where triton is installed. With TRITON_INTERPRET=1 set before the import they run on a CPU.
"""
