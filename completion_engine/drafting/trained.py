"""Loading the drafter that was trained for a target: on our kernels for GPUs where the target is there."""

from __future__ import annotations

from pathlib import Path

from completion_engine.drafting.distilled import NUM_BEAMS, DrafterFiles, load_distilled
from completion_engine.drafting.draft import Drafter
from completion_engine.gpu.loading import as_graphed
from completion_engine.kv_cache import KVCache
from completion_engine.language_model import LanguageModel


def load_trained(folder: Path, target: LanguageModel) -> Drafter:
    """The drafter in `folder`, ready to draft for `target`. Errors as in `load_distilled`."""
    decoder = as_graphed(target.decoder)
    if decoder is None:
        return load_distilled(folder, target)
    from completion_engine.drafting.device_beams import BeamSearch, DeviceDrafter  # noqa: PLC0415 - needs triton
    from completion_engine.drafting.device_network import DeviceNetwork  # noqa: PLC0415 - as above

    files = DrafterFiles.read(folder)
    network = DeviceNetwork(files, target, decoder, NUM_BEAMS)
    return DeviceDrafter(BeamSearch(network, files.temperatures), KVCache(target.cache_shape))
