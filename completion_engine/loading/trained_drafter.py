"""Loads a trained drafter on the target's device, and the decoder of whole steps on a GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from completion_engine.drafting.device_steps import DeviceDecoder
from completion_engine.drafting.distilled.drafter import NUM_BEAMS, DrafterFiles, load_distilled
from completion_engine.drafting.drafts import Drafter
from completion_engine.errors import SlipstreamError
from completion_engine.gpu.drafting.device_check import steps_agree
from completion_engine.gpu.loading import as_graphed
from completion_engine.gpu.machine import first_line
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

logger = logging.getLogger(__name__)

_CHECKED_TOKENS = 24  # written by steps on a GPU and compared, before such steps are used
_STANDS_IN_FOR = {"ngram", "recycled", "neural"}  # drafters that whole steps on the device can replace


Note = Callable[[str], None]


def load_trained(folder: Path, target: LanguageModel, note: Note = logger.warning) -> Drafter | None:
    """Return the drafter in `folder`, ready to draft for `target`. Errors as in `load_distilled`.

    None if it fails on a GPU; then `note` gets the reason, and the target runs without it.
    """
    if not _is_on_gpu(target):
        return load_distilled(folder, target)
    try:
        return _on_device(folder, target)
    except SlipstreamError:
        raise
    except Exception as error:  # errors of GPU kernels and libraries have no common base class
        logger.warning("The trained drafter fails on the GPU", exc_info=True)
        note(f"The trained drafter is not used: {_said(error)}.")
        return None


def _on_device(folder: Path, target: LanguageModel) -> Drafter:
    decoder = as_graphed(target.decoder)
    if decoder is None:
        return load_distilled(folder, target)
    from completion_engine.gpu.drafting.beam_search import BeamSearch, DeviceDrafter  # noqa: PLC0415 - needs triton
    from completion_engine.gpu.drafting.network import DeviceNetwork  # noqa: PLC0415 - as above

    files = DrafterFiles.read(folder)
    network = DeviceNetwork(files, target, decoder, NUM_BEAMS)
    return DeviceDrafter(BeamSearch(network, files.temperatures), KVCache(target.cache_shape))


def device_decoder_of(
    drafters: Mapping[str, Drafter], target: LanguageModel, num_tokens: int, note: Note = logger.warning
) -> DeviceDecoder | None:
    """Return the decoder of whole steps on the device, which replaces `drafters`; None if that is impossible.

    If it fails, `note` gets the reason, and the host drafts.
    """
    try:
        return _device_loop(drafters, target, num_tokens, note)
    except Exception as error:  # as above
        logger.warning("Steps on the GPU fail", exc_info=True)
        note(f"The host plans the drafts: {_said(error)}.")
        return None


def _device_loop(
    drafters: Mapping[str, Drafter], target: LanguageModel, num_tokens: int, note: Note
) -> DeviceDecoder | None:
    decoder, neural = as_graphed(target.decoder), drafters.get("neural")
    if decoder is None or not target.verifies_trees or set(drafters) - _STANDS_IN_FOR:
        return None
    from completion_engine.gpu.drafting.beam_search import DeviceDrafter  # noqa: PLC0415 - needs triton
    from completion_engine.gpu.drafting.device_loop import DeviceLoop  # noqa: PLC0415 - as above

    looks_up, search = "ngram" in drafters, neural.search if isinstance(neural, DeviceDrafter) else None
    if search is None and (neural is not None or not looks_up):
        return None
    loop = DeviceLoop(decoder, search, num_tokens, looks_up=looks_up)
    num_written = (
        _CHECKED_TOKENS if target.device.type == "cuda" else 1
    )  # interpreted kernels take minutes for more
    if not steps_agree(loop, target, num_tokens, num_written):
        note("The host plans the drafts: steps on the GPU do not write what it writes token by token.")
        return None
    return loop


def _is_on_gpu(target: LanguageModel) -> bool:
    return target.device.type != "cpu" or as_graphed(target.decoder) is not None


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(str(error)) or 'it failed'}".rstrip(".")
