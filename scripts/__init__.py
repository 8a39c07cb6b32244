"""Slipstream's dependencies, by name, version and hash: to install, to lock, to check and to list it."""
