"""Replays a repository's own commits: what would Slipstream have saved while they were typed?

Reads git objects only. Must not write into the repository, run what its configuration or attributes name,
or show the server any text that is newer than the line being typed.
"""
