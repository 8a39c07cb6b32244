"""What one completion is written with and ended by. Names only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from completion_engine.decoding.repository_memory import RepositoryMemory
from completion_engine.decoding.sampling import Sampler
from completion_engine.decoding.slots import Setting
from completion_engine.drafting.device_step import DeviceDecoder
from completion_engine.drafting.draft import Drafter
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.target_model.language_model import LanguageModel


class TextRules(Protocol):
    """When a text is long enough; see `completion_engine.suggestions`."""

    def check(self, generated: str) -> object | None:
        """A stop with `rule` and `num_chars`, or None to go on."""
        ...

    def boundary(self, generated: str) -> int:
        """Characters up to the last sensible place to cut."""
        ...

    def head(self, generated: str, num_chars: int) -> int:
        """Characters up to the last sensible place to cut within the first `num_chars`."""
        ...


@dataclass(frozen=True, slots=True)
class Finish:
    """Why writing ended, and how many characters of the text count."""

    reason: str
    num_chars: int
    rule: str = ""


@dataclass(frozen=True, slots=True)
class DecodingContext:
    """What writes: the target, how it picks, and who guesses ahead of it, in trees or in chains.

    `device_decoder` takes steps of greedy decoding by itself where it can; None where nothing can. `memory`
    is mixed into what the target writes. `weighs` tells how likely each written token was.
    """

    target: LanguageModel
    sampler: Sampler
    drafters: Sequence[Drafter]
    table: SurvivalTable
    drafts_trees: bool = True
    device_decoder: DeviceDecoder | None = None
    memory: RepositoryMemory | None = None
    weighs: bool = True

    @property
    def setting(self) -> Setting:
        """What the picks depend on, besides the logits and the state of the repository."""
        return (*self.sampler.setting, self.memory.source if self.memory else None)
