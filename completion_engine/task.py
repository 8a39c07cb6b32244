"""One request as the engine works on it: where it is, its prompt, its cache and who writes.

Knows nothing of time, nor of how an answer is made out of what is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from completion_engine.decoding import Decoding, Means
from completion_engine.prompt import Prompt
from completion_engine.request import CompletionRequest
from completion_engine.slots import Slot
from completion_engine.stats import CompletionStats
from completion_engine.suggestions.place import Place
from completion_engine.tokenizer import Tokenizer
from completion_engine.written import Written


@dataclass(frozen=True, slots=True)
class Task:
    """A request with all that is needed to write at its place, again and again."""

    request: CompletionRequest
    place: Place
    prompt: Prompt
    slot: Slot
    means: Means
    tokenizer: Tokenizer

    def decoding(self, stats: CompletionStats, slot: Slot | None = None) -> Decoding:
        """Begin to write, or go on from what the slot, or another on the same cache, knows of the text."""
        written = Written(self.tokenizer, self.prompt.healed)
        return Decoding(self.means, slot or self.slot, self.prompt, written, stats)
