"""The commands of the `slipstream` program, one module each.

Heavy modules are imported when a command runs.
"""
