"""Reuse of an earlier completion: the tokens that it shows to follow a prompt, so that no pass is needed.

Typing what a completion says leaves its tokens in front and only tightens what the next one must spell. So
the target's earlier pick, the best of a wider choice, is still the best. This holds for equally likely tokens
too: the lowest is picked everywhere. Runs nothing. Does not depend on models, caches and the network.
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
    """Tokens that follow a prompt, where each came from, and its probability.

    With `has_ended` nothing follows them.
    """

    tokens: Sequence[int] = ()
    sources: Sequence[DraftToken | None] = ()
    probabilities: Sequence[TokenProbability] = ()
    has_ended: bool = False


@dataclass(slots=True)
class PastCompletion:
    """A prompt and what was written after it: `path[num_forced:]`, whose first tokens had to spell `healed`.

    `setting` is what the picks depend on besides the logits; `bias` was mixed in. The servers were asked for
    all probabilities where it `is_scored`. The lists may grow while the completion is being written.
    """

    path: list[int] = field(default_factory=list)
    num_forced: int = 0
    healed: bytes = b""
    setting: Hashable = None
    sources: list[DraftToken | None] = field(default_factory=list)
    probabilities: list[TokenProbability] = field(default_factory=list)
    bias: RepositoryBias | None = None
    is_scored: bool = False
    has_ended: bool = False  # nothing follows what is written

    def continuation(self, prompt: Prompt, written: Written, *, needs_scores: bool) -> Continuation:
        """Return the tokens that follow `prompt`, up to the first without a score if it `needs_scores`."""
        known = self._tokens_after(prompt, written)
        num_typed = len(prompt.tokens) - self.num_forced
        probabilities = _narrowed(known, self.probabilities[num_typed:], written.healing()) if known else []
        num_usable = num_scored(probabilities) if needs_scores else len(known)
        return Continuation(
            known[:num_usable],
            self.sources[num_typed:][:num_usable],
            probabilities[:num_usable],
            has_ended=self.has_ended and num_usable == len(known),
        )

    def _tokens_after(self, prompt: Prompt, written: Written) -> list[int]:
        num_prompt = len(prompt.tokens)
        if num_prompt < self.num_forced or self.path[:num_prompt] != list(prompt.tokens):
            return []
        typed = written.spell(self.path[self.num_forced : num_prompt]) + prompt.healed
        known = self.path[num_prompt:]
        return known if typed.startswith(self.healed) and written.follows(known) else []


class PastCompletions:
    """The last completions of all documents, the newest last."""

    def __init__(self) -> None:
        self._past: OrderedDict[tuple[str, tuple[int, ...]], PastCompletion] = OrderedDict()

    def commit(self, document: str, past: PastCompletion) -> None:
        """Hold a completion of a document, in place of an earlier one after the same prompt."""
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
        """Return what the newest fitting completion of a document shows to follow `prompt`."""
        for (name, _), past in reversed(self._past.items()):
            if name == document and past.setting == setting:
                needs = needs_scores and not past.is_scored
                found = past.continuation(prompt, written, needs_scores=needs)
                if found.tokens:
                    return found
        return Continuation()

    def written_after(self, prompt: Sequence[int]) -> list[int]:
        """Return the tokens that any completion shows to follow a prompt."""
        return path_after((past.path for past in self._past.values()), prompt)

    def num_missing(self, prompt: Sequence[int]) -> int:  # noqa: ARG002 - see `CachedPrompts`
        """Return 0: servers compute prompts, this machine does not."""
        return 0


def path_after(paths: Iterable[Sequence[int]], prompt: Sequence[int]) -> list[int]:
    """Return what the first path that begins with `prompt` holds after it; empty without one."""
    num_prompt, tokens = len(prompt), list(prompt)
    longer = (path for path in paths if len(path) > num_prompt)
    return next((list(path[num_prompt:]) for path in longer if list(path[:num_prompt]) == tokens), [])


def sampling_setting(temperature: float, seed: int) -> tuple[float, int]:
    """Return what a pick depends on besides the logits: a greedy one not on the seed."""
    return temperature, seed if temperature else 0


def _narrowed(
    tokens: Sequence[int], probabilities: Sequence[TokenProbability], healing: HealingConstraint
) -> list[TokenProbability]:
    """Return the probabilities of `tokens` among those that spell `healing`: more is typed than before."""
    found: list[TokenProbability] = []
    for token, probability in zip(tokens, probabilities, strict=True):
        found.append(probability.among(healing.allows) if healing.bytes else probability)
        healing = healing.after(token)
    return found
