"""What the servers wrote lately behind which prompt, so that typing along it asks nobody.

Owns the token ids that are kept. Knows no network.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from completion_engine.decoding.along import Known, among_spelt, path_behind, tokens_along
from completion_engine.decoding.chances import Chance, num_known
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.written import Written
from completion_engine.request import CompletionRequest

MAX_PLACES = 16
Setting = tuple[float, int]  # temperature and seed


@dataclass(slots=True)
class Place:
    """`path[num_forced:]` was written under `setting`, its first tokens bound to spell `healed`.

    `chances` says how likely each of these tokens was, as far as the servers told; all were asked for where
    it `weighs`.
    """

    document: str
    path: list[int] = field(default_factory=list)
    chances: list[Chance] = field(default_factory=list)
    num_forced: int = 0
    healed: bytes = b""
    setting: Setting = (0.0, 0)
    weighs: bool = False
    has_ended: bool = False  # nothing follows what is written


def setting_of(request: CompletionRequest) -> Setting:
    """What decides about the text beside the prompt."""
    return request.temperature, request.seed if request.temperature else 0


def weighs_for(request: CompletionRequest) -> bool:
    """Whether how likely a text is decides where it ends."""
    return request.eagerness < 1


class Past:
    """The last places, the newest last."""

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, tuple[int, ...]], Place] = OrderedDict()

    def known_after(self, prompt: Sequence[int]) -> list[int]:
        """What some place shows to follow a prompt; nothing where none does."""
        return path_behind((place.path for place in self._places.values()), prompt)

    def num_missing(self, prompt: Sequence[int]) -> int:  # noqa: ARG002 - see `Slots`
        """Whatever a prompt is, the servers compute it while nobody here does."""
        return 0

    def along(self, request: CompletionRequest, prompt: Prompt, written: Written) -> Known:
        """What is known to follow a prompt; where chances decide, as far as they were asked for."""
        setting = setting_of(request)
        for place in reversed(self._places.values()):
            if place.document != request.document or place.setting != setting:
                continue
            known = tokens_along(place.path, place.num_forced, place.healed, prompt, written) or []
            chances = place.chances[len(place.chances) - len(known) :]
            is_usable = place.weighs or not weighs_for(request)
            num_usable = len(known) if is_usable else num_known(chances)
            if num_usable:
                among = among_spelt(known, chances, written.healing())[:num_usable]
                has_ended = place.has_ended and num_usable == len(known)
                return Known(tuple(known[:num_usable]), tuple(among), has_ended)
        return Known()

    def keep(self, place: Place) -> None:
        """From now on this is known."""
        key = place.document, tuple(place.path[: place.num_forced])
        self._places[key] = place
        self._places.move_to_end(key)
        while len(self._places) > MAX_PLACES:
            self._places.popitem(last=False)

    def forget(self, document: str) -> None:
        """A document is closed."""
        for key in [key for key in self._places if key[0] == document]:
            del self._places[key]
