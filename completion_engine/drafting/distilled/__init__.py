"""A small network trained to run ahead of one target: its drafts, its weights, its program."""
