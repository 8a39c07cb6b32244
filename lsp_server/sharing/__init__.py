"""One process, the host, serves all of a user's editor windows; each editor starts a thin relay to it.

`address` finds the host, `wire` is their protocol, `relay` and `host` are the two sides. None
of them reads the messages of editor and server. All modules but `host` are light to import.
"""
