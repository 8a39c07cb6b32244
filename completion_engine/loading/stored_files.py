"""The stored files of a target besides its model: packed weights, compiled kernels, a trained drafter.

Finds what is damaged, and removes it so that the next load makes it anew.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from completion_engine.cpu.kernels.kernel_cache import KERNEL_FOLDER
from completion_engine.cpu.kernels.stored_kernels import damaged_kernels
from completion_engine.cpu.packed_file import damaged_in, packed_folder
from completion_engine.drafting.distilled import DrafterFiles
from completion_engine.errors import DataError, MachineError, SlipstreamError, UserError
from completion_engine.loading.backends import forget_frames
from completion_engine.loading.drafters import trained_folder
from completion_engine.models import ModelStore
from completion_engine.models.gguf_layout import read_layout
from completion_engine.request import CancelledError
from completion_engine.target_model.model_files import weight_files

logger = logging.getLogger(__name__)

T = TypeVar("T")


def load_or_repair(target: str, load: Callable[[], T]) -> T:
    """Return what `load` returns, which fetches and loads a target; see `is_repaired`."""
    try:
        return load()
    except Exception as error:
        if not is_repaired(target, error):
            raise
    return load()


def is_repaired(target: str, error: Exception) -> bool:
    """Remove the stored files that may be why loading a target failed; return whether to load it once more.

    Errors of the user or of the machine are not the files'.
    """
    if isinstance(error, (CancelledError, UserError, MachineError)):
        return False
    if not make_anew(target, with_derived=not isinstance(error, DataError)):
        return False
    logger.warning("%s could not be loaded; its files are made anew", target, exc_info=error)
    forget_frames(error)
    return True


def make_anew(target: str, *, with_derived: bool) -> bool:
    """Remove what is damaged of a target, and `with_derived` its packed weights, damaged or not.

    Return whether something was removed.
    """
    store, is_removed = ModelStore(), False
    with suppress(SlipstreamError, OSError, ValueError):
        if with_derived and (folder := packed_folder(weight_files(store.ensure(target)))).is_dir():
            shutil.rmtree(folder)
            is_removed = True
    return store.discard_damaged(target) or is_removed


def forget_kernels() -> None:
    """Remove all compiled kernels of this version."""
    shutil.rmtree(KERNEL_FOLDER, ignore_errors=True)


def damaged_files(folder: Path) -> Iterator[Path]:
    """Yield the files for the target in `folder` that do not match their checksums. Reads all of them."""
    layout = read_layout(folder)
    if layout and layout.is_damaged():
        yield layout.file
    yield from damaged_in(packed_folder(weight_files(folder)))
    yield from damaged_kernels()


def check_drafter(target: str) -> None:
    """Raise DataError if the drafter that is shipped for a target is damaged."""
    if trained := trained_folder(target):
        DrafterFiles.read(trained)
