"""The repository's n-gram index: token ids in, token ids out. Does not use torch, tokenizers or editors."""

from ngram_cache.buffer import TokenBuffer
from ngram_cache.index import NgramIndex
from ngram_cache.lookup import DraftNode, Lookup, Successors
from ngram_cache.search import IndexView

__all__ = ["DraftNode", "IndexView", "Lookup", "NgramIndex", "Successors", "TokenBuffer"]
