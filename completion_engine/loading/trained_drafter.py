"""What drafts where the target is: a drafter on the same kernels, whole steps on a GPU."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from completion_engine.drafting.device_steps import DeviceDecoder
from completion_engine.drafting.distilled.drafter import NUM_BEAMS, DrafterFiles, load_distilled
from completion_engine.drafting.drafts import Drafter
from completion_engine.gpu.drafting.device_check import steps_agree
from completion_engine.gpu.loading import as_graphed
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

logger = logging.getLogger(__name__)

_STANDS_IN_FOR = {"ngram", "recycled", "neural"}  # drafters that a loop on the device does without


def load_trained(folder: Path, target: LanguageModel) -> Drafter:
    """The drafter in `folder`, ready to draft for `target`. Errors as in `load_distilled`."""
    decoder = as_graphed(target.decoder)
    if decoder is None:
        return load_distilled(folder, target)
    from completion_engine.gpu.drafting.beam_search import BeamSearch, DeviceDrafter  # noqa: PLC0415 - needs triton
    from completion_engine.gpu.drafting.network import DeviceNetwork  # noqa: PLC0415 - as above

    files = DrafterFiles.read(folder)
    network = DeviceNetwork(files, target, decoder, NUM_BEAMS)
    return DeviceDrafter(BeamSearch(network, files.temperatures), KVCache(target.cache_shape))


def device_decoder_of(
    drafters: Mapping[str, Drafter], target: LanguageModel, num_tokens: int
) -> DeviceDecoder | None:
    """Whole steps on the device in place of `drafters`, where target and drafters allow that; else None."""
    decoder, neural = as_graphed(target.decoder), drafters.get("neural")
    if decoder is None or not target.verifies_trees or set(drafters) - _STANDS_IN_FOR:
        return None
    from completion_engine.gpu.drafting.beam_search import DeviceDrafter  # noqa: PLC0415 - needs triton
    from completion_engine.gpu.drafting.device_loop import DeviceLoop  # noqa: PLC0415 - as above

    looks_up, search = "ngram" in drafters, neural.search if isinstance(neural, DeviceDrafter) else None
    if search is None and (neural is not None or not looks_up):
        return None
    loop = DeviceLoop(decoder, search, num_tokens, looks_up=looks_up)
    is_on_gpu = target.device.type == "cuda"  # interpreted, the check takes minutes
    if is_on_gpu and not steps_agree(loop, target, num_tokens):
        logger.warning("Steps on the GPU do not write what it writes token by token: the host plans.")
        return None
    return loop
