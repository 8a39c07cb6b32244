"""Slipstream and other programs at the keystroke: the same keys, files and model file, in turn.

Owns how another program's client behaves. Has no access to Slipstream but through its server.
"""
