"""The repository's n-gram index: token ids in, token ids out. Knows no torch, no tokenizer, no editor."""

from ngram_cache.buffer import TokenBuffer
from ngram_cache.draft import DraftNode, Lookup
from ngram_cache.index import NgramIndex

__all__ = ["DraftNode", "Lookup", "NgramIndex", "TokenBuffer"]
