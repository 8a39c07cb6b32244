"""One completion being written: draft, verify, accept, rewind, stop."""
