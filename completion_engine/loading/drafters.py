"""The drafters of one engine, as its configuration names them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from completion_engine.config import EngineConfig
from completion_engine.drafting.distilled import WEIGHTS, DrafterFiles, load_distilled
from completion_engine.drafting.drafts import Drafter
from completion_engine.drafting.model_drafter import ModelDrafter, check_same_vocabulary
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.errors import DataError, SlipstreamError
from completion_engine.gpu.machine import first_line
from completion_engine.loading.model import load_language_model
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import path_of
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import Progress, ShouldStop
from completion_engine.target_model.language_model import LanguageModel

logger = logging.getLogger(__name__)

_TRAINED = Path(__file__).parents[1] / "drafters"  # trained drafters that come with the package, by target
Note = Callable[[str], None]


def build_drafters(  # noqa: PLR0913 - the parts of drafters, and the receiver of notes
    config: EngineConfig,
    target: LanguageModel,
    tokenizer: Tokenizer,
    report: Progress | None = None,
    should_stop: ShouldStop | None = None,
    note: Note = logger.warning,
) -> dict[str, Drafter]:
    """Return the drafters by name, cheapest first. A target without a trained drafter gets no neural one.

    A trained drafter that fails is left out, and `note` gets the reason. Raises SlipstreamError if a
    draft model cannot be loaded or has another vocabulary.
    """
    found: dict[str, Drafter] = {}
    if "ngram" in config.drafters:
        found["ngram"] = NgramDrafter()
    if "neural" in config.drafters:
        neural = _neural(config, target, tokenizer, report, should_stop, note)
        if neural is not None:
            found["neural"] = neural
    return found


def trained_folder(target: str) -> Path | None:
    """Return the folder of the drafter that is shipped for `target`; None without one."""
    folder = _TRAINED / target
    if folder.parent != _TRAINED:
        return None  # the target is a path
    return folder if (folder / WEIGHTS).is_file() else None


def check_drafter(target: str) -> None:
    """Raise DataError if the drafter that is shipped for `target` is damaged."""
    if trained := trained_folder(target):
        DrafterFiles.read(trained)


def _neural(  # noqa: PLR0913 - as above
    config: EngineConfig,
    target: LanguageModel,
    tokenizer: Tokenizer,
    report: Progress | None,
    should_stop: ShouldStop | None,
    note: Note,
) -> Drafter | None:
    """Return the configured draft model or drafter, by default the one that is shipped for the target."""
    trained = path_of(config.draft_model) if config.draft_model else trained_folder(config.target)
    if trained is not None and (trained / WEIGHTS).is_file():
        try:
            return load_trained(trained, target, note)
        except DataError as error:
            if config.draft_model:
                raise
            note(str(error))
            return None
    if not config.draft_model:
        return None
    folder = ModelStore().ensure(config.draft_model, report, should_stop)
    check_same_vocabulary(tokenizer, load_tokenizer(folder), config.draft_model)
    model = load_language_model(folder, str(target.device), config.dtype, target.capacity)
    model.rehearse()
    return ModelDrafter(model, tokenizer.num_tokens)


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
