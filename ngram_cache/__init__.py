"""The repository's n-gram index: token ids in, token ids out."""
