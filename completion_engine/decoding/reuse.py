"""Reuse of an earlier completion: its tokens that follow the new prompt are returned without a pass.

If the user types a prefix of a completion, its remaining tokens are still the target's picks, because the
typed text only narrows the set of allowed tokens. This holds for equally likely tokens too, because the
lowest id is picked everywhere.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from completion_engine.probability import TokenProbability, num_scored
from completion_engine.prompting.prompt import HealingConstraint, Prompt, Written

if TYPE_CHECKING:  # a window on remote servers starts without torch
    from completion_engine.decoding.repository_bias import RepositoryBias
    from completion_engine.drafting.drafts import DraftToken

MAX_PAST = 16


@dataclass(frozen=True, slots=True)
class Continuation:
    """Reused tokens that follow a prompt, with their sources and probabilities.

    With `has_ended` the completion ends after them.
    """

    tokens: Sequence[int] = ()
    sources: Sequence[DraftToken | None] = ()
    probabilities: Sequence[TokenProbability] = ()
    has_ended: bool = False


@dataclass(slots=True)
class PastCompletion:
    """A prompt, `path[:num_forced]`, and the tokens written after it. Their first bytes are `healed`.

    `setting` holds the inputs of the picks besides the logits; `bias` was mixed in. `is_scored` means that
    servers were asked for all probabilities. The lists grow while the completion is being written.
    """

    path: list[int] = field(default_factory=list)
    num_forced: int = 0
    healed: bytes = b""
    setting: Hashable = None
    sources: list[DraftToken | None] = field(default_factory=list)
    probabilities: list[TokenProbability] = field(default_factory=list)
    bias: RepositoryBias | None = None
    is_scored: bool = False
    has_ended: bool = False  # with an end token, so no more tokens follow

    def continuation(self, prompt: Prompt, written: Written, *, needs_scores: bool) -> Continuation:
        """Return the tokens after `prompt`; with `needs_scores`, up to the first without a probability."""
        reused = self._tokens_after(prompt, written)
        num_typed = len(prompt.tokens) - self.num_forced
        probabilities = _narrowed(reused, self.probabilities[num_typed:], written.healing()) if reused else []
        num_usable = num_scored(probabilities) if needs_scores else len(reused)
        return Continuation(
            reused[:num_usable],
            self.sources[num_typed:][:num_usable],
            probabilities[:num_usable],
            has_ended=self.has_ended and num_usable == len(reused),
        )

    def _tokens_after(self, prompt: Prompt, written: Written) -> list[int]:
        num_prompt = len(prompt.tokens)
        if num_prompt < self.num_forced or self.path[:num_prompt] != list(prompt.tokens):
            return []
        typed = written.spell(self.path[self.num_forced : num_prompt]) + prompt.healed
        reused = self.path[num_prompt:]
        return reused if typed.startswith(self.healed) and written.follows(reused) else []


class PastCompletions:
    """The last completions of all documents, up to `MAX_PAST`, the newest last."""

    def __init__(self) -> None:
        self._past: OrderedDict[tuple[str, tuple[int, ...]], PastCompletion] = OrderedDict()

    def commit(self, document: str, past: PastCompletion) -> None:
        """Store a completion of a document; it replaces one after the same prompt."""
        key = document, tuple(past.path[: past.num_forced])
        self._past[key] = past
        self._past.move_to_end(key)
        while len(self._past) > MAX_PAST:
            self._past.popitem(last=False)

    def forget(self, document: str) -> None:
        """Drop the completions of a closed document."""
        for key in [key for key in self._past if key[0] == document]:
            del self._past[key]

    def continuation(
        self, document: str, setting: Hashable, prompt: Prompt, written: Written, *, needs_scores: bool
    ) -> Continuation:
        """Return the tokens after `prompt` in the document's newest completion that begins with it."""
        for (name, _), past in reversed(self._past.items()):
            if name == document and past.setting == setting:
                needs = needs_scores and not past.is_scored
                found = past.continuation(prompt, written, needs_scores=needs)
                if found.tokens:
                    return found
        return Continuation()

    def written_after(self, prompt: Sequence[int]) -> list[int]:
        """Return the tokens that follow `prompt` in any stored completion; empty if none matches."""
        return path_after((past.path for past in self._past.values()), prompt)

    def num_missing(self, prompt: Sequence[int]) -> int:  # noqa: ARG002 - see `CachedPrompts`
        """Return 0: the servers compute the prompts."""
        return 0


def path_after(paths: Iterable[Sequence[int]], prompt: Sequence[int]) -> list[int]:
    """Return the tokens after `prompt` in the first path that begins with it; empty if none does."""
    num_prompt, tokens = len(prompt), list(prompt)
    longer = (path for path in paths if len(path) > num_prompt)
    return next((list(path[num_prompt:]) for path in longer if list(path[:num_prompt]) == tokens), [])


def sampling_setting(temperature: float, seed: int) -> tuple[float, int]:
    """Return the inputs of a pick besides the logits; the seed is 0 for greedy picks, which ignore it."""
    return temperature, seed if temperature else 0


def _narrowed(
    tokens: Sequence[int], probabilities: Sequence[TokenProbability], healing: HealingConstraint
) -> list[TokenProbability]:
    """Return the probabilities of `tokens` among the tokens that the new `healing` still allows."""
    found: list[TokenProbability] = []
    for token, probability in zip(tokens, probabilities, strict=True):
        found.append(probability.among(healing.allows) if healing.bytes else probability)
        healing = healing.after(token)
    return found
