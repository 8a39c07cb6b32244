"""One request as the engine works on it: where it is, its prompt, its cache and who writes.

Knows nothing of time, nor of how an answer is made out of what is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from completion_engine.decoding.attribution import Origins
from completion_engine.decoding.context import DecodingContext
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.slots import Slot
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.prompting.written import Written
from completion_engine.request import CompletionRequest
from completion_engine.stats import CompletionStats
from completion_engine.suggestions.cursor_context import CursorContext


@dataclass(frozen=True, slots=True)
class Task:
    """A request with all that is needed to write at its cursor, again and again."""

    request: CompletionRequest
    cursor: CursorContext
    prompt: Prompt
    slot: Slot
    context: DecodingContext
    tokenizer: Tokenizer
    shows_all: bool = True  # of the text that a prompt may show

    def decoding(self, stats: CompletionStats, slot: Slot | None = None) -> Decoding:
        """Begin to write, or go on from what the slot, or another on the same cache, knows of the text."""
        written = Written(self.tokenizer, self.prompt.healed)
        return Decoding(self.context, slot or self.slot, self.prompt, written, stats)

    @property
    def weighs(self) -> bool:
        """Whether the target tells how likely each token is."""
        return self.context.weighs

    def origins(self) -> Origins:
        """Tells where the characters of what is written here came from."""
        return Origins(self.tokenizer, self.request.index, self.prompt.num_context)
