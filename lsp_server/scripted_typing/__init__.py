"""A person's typing as a script: which keys are pressed, and which suggestions are accepted.

Pure: text and suggestions in, changes out. Has no access to a server, the engine or the clock.
"""
