"""The drafters of one engine, as its configuration names them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from completion_engine.config import EngineConfig
from completion_engine.drafting.distilled import WEIGHTS, load_distilled
from completion_engine.drafting.drafts import Drafter
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.errors import DataError, SlipstreamError, UserError
from completion_engine.gpu.machine import first_line
from completion_engine.models.catalogue import path_of
from completion_engine.target_model.language_model import LanguageModel

logger = logging.getLogger(__name__)

_TRAINED = Path(__file__).parents[1] / "drafters"  # trained drafters that come with the package, by target
Note = Callable[[str], None]


def build_drafters(
    config: EngineConfig, target: LanguageModel, note: Note = logger.warning
) -> dict[str, Drafter]:
    """Return the drafters by name, cheapest first. A target without a trained drafter gets no neural one.

    A trained drafter that fails is left out, and `note` gets the reason. Raises SlipstreamError if the one
    that `config` names cannot be loaded or is for another target.
    """
    found: dict[str, Drafter] = {}
    if "ngram" in config.drafters:
        found["ngram"] = NgramDrafter()
    if "neural" in config.drafters:
        neural = _neural(config, target, note)
        if neural is not None:
            found["neural"] = neural
    return found


def trained_folder(target: str) -> Path | None:
    """Return the folder of the drafter that is shipped for `target`; None without one."""
    folder = _TRAINED / target
    if folder.parent != _TRAINED:
        return None  # the target is a path
    return folder if (folder / WEIGHTS).is_file() else None


def _neural(config: EngineConfig, target: LanguageModel, note: Note) -> Drafter | None:
    """Return the configured drafter, by default the one that is shipped for the target."""
    if not config.draft_model:
        shipped = trained_folder(config.target)
        try:
            return load_trained(shipped, target, note) if shipped else None
        except DataError as error:
            note(str(error))
            return None
    folder = path_of(config.draft_model)
    if folder is None or not (folder / WEIGHTS).is_file():
        raise UserError(
            f"The setting draftModel is not the path of a trained drafter: {config.draft_model}.",
            advice="Name the folder of one, such as ./drafter, or remove the setting.",
        )
    return load_trained(folder, target, note)


def load_trained(folder: Path, target: LanguageModel, note: Note = logger.warning) -> Drafter | None:
    """Return the drafter in `folder`, ready to draft for `target`. Errors as in `load_distilled`.

    None if it fails otherwise; then `note` gets the reason, and the target runs without it.
    """
    try:
        return load_distilled(folder, target)
    except SlipstreamError:
        raise
    except Exception as error:  # errors of a GPU's libraries have no common base class
        logger.warning("The trained drafter fails", exc_info=True)
        said = f"{type(error).__name__}: {first_line(str(error)) or 'it failed'}".rstrip(".")
        note(f"The trained drafter is not used: {said}.")
        return None
