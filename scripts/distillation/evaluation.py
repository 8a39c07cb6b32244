"""Acceptance of a drafter: greedy drafts against the target's text, in code that it was not trained on.

The target writes from a held-out position. A draft begins at every written token, and is right up to its
first difference from the target's text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor

from completion_engine.drafting.drafter_network import DistilledNetwork
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Progress
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import PREFILL_ROWS, LanguageModel
from scripts.distillation.collection import Window, draw_windows

DEPTHS = 6
_TEMPERATURES = tuple(0.05 * step for step in range(6, 41))
_LEAST_TRIED = 30  # guesses at a depth before a temperature of its own is fitted


@dataclass(frozen=True, slots=True)
class Examination:
    """The positions and the amount of a measurement: `num_windows` places in `texts`, `num_tokens` written at
    each.
    """

    texts: Sequence[str]
    window_tokens: int
    num_windows: int = 60
    num_tokens: int = 40
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Acceptance:
    """By depth, 1 first: guesses with only right ones before them, how many were right, and temperatures.

    The temperatures make shares of the logits that fit what the target wrote best.
    """

    num_tried: tuple[int, ...]
    num_right: tuple[int, ...]
    temperatures: tuple[float, ...]

    @property
    def conditional(self) -> list[float]:
        """Part of the guesses that are right where all before them are."""
        return [right / max(1, tried) for right, tried in zip(self.num_right, self.num_tried, strict=True)]

    @property
    def survival(self) -> list[float]:
        """Part of the drafts that are right to this depth."""
        found, chance = [], 1.0
        for share in self.conditional:
            chance *= share
            found.append(chance)
        return found


@dataclass(slots=True)
class _Tally:
    tried: int = 0
    right: int = 0
    surprises: list[Tensor] = field(default_factory=list)  # by temperature, of each guess

    def add(self, logits: Tensor, place: int) -> bool:
        """A guess whose right answer is at `place` of the logits, or nowhere (-1)."""
        is_right = int(logits.argmax()) == place
        self.tried += 1
        self.right += is_right
        if place >= 0:
            scaled = logits.float() / torch.tensor(_TEMPERATURES, device=logits.device)[:, None]
            self.surprises.append(scaled.logsumexp(-1) - scaled[:, place])
        return is_right

    def temperature(self, default: float) -> float:
        """The one under which the right answers surprise least."""
        if len(self.surprises) < _LEAST_TRIED:
            return default
        return round(_TEMPERATURES[int(torch.stack(self.surprises).mean(0).argmin())], 2)


@torch.inference_mode()
def measure_acceptance(
    network: DistilledNetwork,
    ids: Tensor,
    parts: tuple[LanguageModel, Tokenizer],
    examination: Examination,
    report: Progress,
) -> Acceptance:
    """Greedy chains from every token that the target writes; `ids` [num_tokens] are what can be guessed."""
    tallies = [_Tally() for _ in range(DEPTHS)]
    places = {token: place for place, token in enumerate(ids.tolist())}
    rng = random.Random(f"{examination.seed}/held out")  # noqa: S311 - a reproducible draw
    room = examination.window_tokens - examination.num_tokens
    windows = draw_windows(examination.texts, parts[1], room, rng)
    cache = KVCache(parts[0].cache_shape)
    for at, window in enumerate(islice(windows, examination.num_windows)):
        report("Measuring on held-out code", at, examination.num_windows)
        cache.rewind(0)
        start = rng.randrange(window.num_prompt, len(window.tokens))
        tokens = _write_on(window, start, parts, examination.num_tokens, cache)
        for begin in range(start, len(tokens) - 1):
            for depth, (logits, token) in enumerate(_chain(network, tokens, begin, cache)):
                if not tallies[depth].add(logits, places.get(token, -1)):
                    break
    report("Measuring on held-out code", examination.num_windows, examination.num_windows)
    temperatures: list[float] = []
    for tally in tallies:
        temperatures.append(tally.temperature(temperatures[-1] if temperatures else 1.0))
    return Acceptance(
        tuple(tally.tried for tally in tallies), tuple(tally.right for tally in tallies), tuple(temperatures)
    )


def _write_on(
    window: Window, start: int, parts: tuple[LanguageModel, Tokenizer], num_tokens: int, cache: KVCache
) -> list[int]:
    """Return the window's first `start` tokens and the target's continuation; all but the last are cached."""
    target, tokenizer = parts
    tokens = list(window.tokens[:start])
    while len(tokens) < start + num_tokens and tokens[-1] not in tokenizer.end_ids:
        chunk = tokens[cache.num_cached :][:PREFILL_ROWS]
        logits = target.forward(chunk, cache, 1)
        cache.keep(chunk)
        if cache.num_cached == len(tokens):
            tokens.append(int(logits[0, : tokenizer.num_tokens].argmax()))
    return tokens


def _chain(
    network: DistilledNetwork, tokens: Sequence[int], begin: int, cache: KVCache
) -> Iterator[tuple[Tensor, int]]:
    """Yield the logits of the guess at each depth after token `begin`, and the target's token there.

    The cache is rewound to its state when that token had just been written.
    """
    cache.rewind(0)
    cache.keep(tokens[:begin])
    states = cache.hidden[begin - 1 : begin]
    for at in range(begin, min(begin + DEPTHS, len(tokens) - 1)):
        rows = torch.tensor(tokens[at : at + 1], device=states.device)
        states, logits = network.step(rows, states, cache, at)
        yield logits[0], tokens[at + 1]
