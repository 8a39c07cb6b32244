"""What an earlier text says about a prompt that goes on along it. Pure functions of token ids and chances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from completion_engine.decoding.chances import Chance
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.written import HealingConstraint, Written


@dataclass(frozen=True, slots=True)
class Known:
    """Tokens that follow a prompt, and how likely each is; `is_whole` where nothing follows them."""

    tokens: tuple[int, ...] = ()
    chances: tuple[Chance, ...] = ()
    is_whole: bool = False


def tokens_along(
    path: Sequence[int], num_forced: int, healed: bytes, prompt: Prompt, written: Written
) -> list[int] | None:
    """What was written in `path` behind `prompt`; None where that goes another way.

    The first `num_forced` tokens of `path` were its own prompt, and what follows had to spell `healed`.
    Typing along a text leaves the same tokens in front and only tightens what the next one must spell.
    """
    num_prompt = len(prompt.tokens)
    if num_prompt < num_forced or list(path[:num_prompt]) != list(prompt.tokens):
        return None
    typed = written.spell(list(path[num_forced:num_prompt])) + prompt.healed
    known = list(path[num_prompt:])
    return known if typed.startswith(healed) and written.follows(known) else None


def among_spelt(tokens: Sequence[int], chances: Sequence[Chance], healing: HealingConstraint) -> list[Chance]:
    """The chances of `tokens` among what spells `healing`: more is typed than when they were written."""
    found: list[Chance] = []
    for token, chance in zip(tokens, chances, strict=True):
        found.append(chance.among(healing.allows) if healing.bytes else chance)
        healing = healing.after(token)
    return found


def path_behind(paths: Iterable[Sequence[int]], prompt: Sequence[int]) -> list[int]:
    """What one of the paths shows to follow a prompt; nothing where none does."""
    num_prompt, tokens = len(prompt), list(prompt)
    longer = (path for path in paths if len(path) > num_prompt)
    return next((list(path[num_prompt:]) for path in longer if list(path[:num_prompt]) == tokens), [])
