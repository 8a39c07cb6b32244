"""A person's typing as a script: which keys are pressed, and which suggestions are accepted.

Pure: text and suggestions in, changes out. Must not know a server, the engine or the clock.
"""
