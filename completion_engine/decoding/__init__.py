"""One completion being written: draft, verify, keep, rewind, stop."""
