"""Drafting on the device: the search, the lookup, and whole steps that the host only reads."""
