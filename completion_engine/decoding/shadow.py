"""Shadow checks: a share of the answers is written once more without drafts, in idle time, and compared.

Owns what waits to be checked, a cache that no draft ever touched, and the counts. Must not know when there is
time for it. Nothing of what a request's own cache holds is used: prompt and tokens are computed anew, and so
the reuse of cached prompts is checked too. What the shadow itself computed before is reused, for it is plain.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

from completion_engine.decoding.context import DecodingContext
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.repository_memory import RepositoryMemory
from completion_engine.decoding.sampling import Sampler
from completion_engine.decoding.slots import Slot
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.prompting.written import Written
from completion_engine.request import CompletionRequest
from completion_engine.stats import CompletionStats
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

logger = logging.getLogger(__name__)

# Whoever types without a pause leaves no time to check; the oldest answers are then left out.
MAX_WAITING = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """What was written with drafts, and all that it follows from."""

    request_id: str
    document: str
    prompt: Prompt
    tokens: tuple[int, ...]
    temperature: float
    seed: int
    memory: RepositoryMemory | None

    @classmethod
    def of(cls, request: CompletionRequest, prompt: Prompt, decoding: Decoding) -> Answer:
        """What was written for a request behind the prompt that was made of it."""
        name, document, tokens = request.id, request.document, tuple(decoding.tokens)
        return cls(name, document, prompt, tokens, request.temperature, request.seed, decoding.memory)


class ShadowChecks:
    """Used on the engine's thread. Its cache is made when the first answer is taken.

    A target that verifies no drafts is not checked: how its passes were cut shows in what it writes.
    """

    def __init__(self, target: LanguageModel, tokenizer: Tokenizer) -> None:
        self.num_checked = 0
        self.num_different = 0
        self._target, self._tokenizer = target, tokenizer
        self._cache: KVCache | None = None
        self._waiting: deque[Answer] = deque(maxlen=MAX_WAITING)
        self._current: tuple[Answer, Decoding] | None = None
        self._due = 0.0

    @property
    def num_bytes(self) -> int:
        """Memory held."""
        return self._cache.shape.num_bytes if self._cache else 0

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to check."""
        return bool(self._waiting) or self._current is not None

    def take(self, answer: Answer, share: float) -> None:
        """Remember an answer to be checked, if it is its turn: of a hundred, `share` of them, evenly."""
        if not answer.tokens or not self._target.verifies_drafts:
            return
        self._due += share
        if self._due >= 1:
            self._due %= 1
            self._waiting.append(answer)

    def forget(self, document: str) -> None:
        """A document was closed: nothing of it is kept to be checked."""
        kept = [answer for answer in self._waiting if answer.document != document]
        self._waiting = deque(kept, MAX_WAITING)
        if self._current is not None and self._current[0].document == document:
            self._current = None

    def step(self) -> bool:
        """One pass of the target. False when nothing waits any more."""
        if self._current is None:
            if not self._waiting:
                return False
            answer = self._waiting.popleft()
            self._current = answer, self._begin(answer)
        answer, decoding = self._current
        decoding.step()
        if self._is_decided(answer, decoding.tokens):
            self._current = None
        return self.is_waiting

    def _begin(self, answer: Answer) -> Decoding:
        """Plain decoding of what was asked, on what plain decoding cached and nothing else."""
        self._cache = self._cache or KVCache(self._target.cache_shape)
        sampler = Sampler(self._tokenizer.num_tokens, answer.temperature, answer.seed)
        context = DecodingContext(
            self._target,
            sampler,
            (),
            SurvivalTable(),
            drafts_trees=False,
            memory=answer.memory,
            weighs=False,
        )
        written = Written(self._tokenizer, answer.prompt.healed)
        return Decoding(context, Slot(self._cache), answer.prompt, written, CompletionStats())

    def _is_decided(self, answer: Answer, tokens: list[int]) -> bool:
        """Whether plain decoding has said enough; counts, and logs a difference, when it has."""
        num_both = min(len(tokens), len(answer.tokens))
        differing = (at for at in range(num_both) if tokens[at] != answer.tokens[at])
        place = next(differing, None)
        if place is None and num_both < len(answer.tokens):
            return False
        self.num_checked += 1
        if place is not None:
            self.num_different += 1
            logger.error(
                "Request %s: with drafts token %d of %d differs from plain decoding",
                answer.request_id or "without a name", place, len(answer.tokens),
            )  # fmt: skip
        return True
