"""One process, the host, serves all editor windows of a user; each editor starts a small relay to it.

`address` finds the host, `host_connection` connects to it and has the protocol of both sides, `relay` and
`host`. Both sides pass the bytes of editor and server on without reading them. All modules but `host` are
light to import.
"""
