"""What one completion is written with. Names only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from completion_engine.decoding.repository_memory import RepositoryMemory
from completion_engine.decoding.sampling import Sampler
from completion_engine.decoding.slots import Setting
from completion_engine.drafting.device_step import DeviceDecoder
from completion_engine.drafting.draft import Drafter
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.target_model.language_model import LanguageModel


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
