"""One process, the host, serves all of a user's editor windows; each editor starts a thin relay to it.

`address` says where the host is found, `wire` how the two speak, `relay` and `host` are the two sides. None
of it knows what is said between editor and server, and all but the host is imported in a moment.
"""
