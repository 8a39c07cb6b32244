"""How numba stores compiled kernels: in the kernels' folder alone, in files that only this user can write.

A file that others may have written is taken for missing, and so is one that does not match its checksum: its
kernel is compiled and stored anew. Knows numba's cache; `kernel_cache` knows which folder is safe.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    NullCache,
    UserProvidedCacheLocator,
)

from completion_engine.checksum import with_checksum, without_checksum
from completion_engine.cpu.kernels import kernel_cache
from completion_engine.cpu.kernels.kernel_cache import StorageProblem, UnsafeError, flaw_of, make_private

logger = logging.getLogger(__name__)

_unstored: set[str] = set()


def are_all_stored() -> bool:
    """Whether each kernel that this process has compiled is there for the next one."""
    return not _unstored


def cache_of(function: Callable[..., Any]) -> FunctionCache | NullCache:
    """Where numba looks for `function` compiled, and puts it; nowhere where no place is safe."""
    if problem := kernel_cache.storage_problem():
        _warn(problem)
    else:
        with suppress(RuntimeError):  # numba's own settings in the environment may name unusable features
            return _KernelCache(function)
    _unstored.add(repr(function))
    return NullCache()


@cache
def _warn(problem: StorageProblem) -> None:
    logger.warning(
        "Kernels are compiled at every start and not stored: %s. %s", problem.found, problem.advice
    )


class _Locator(UserProvidedCacheLocator):
    """Stores a kernel in the kernels' folder, whatever numba's settings for other functions."""

    def __init__(self, function: Any, source: str) -> None:
        self._py_file = source
        self._lineno = function.__code__.co_firstlineno
        self._cache_path = str(kernel_cache.KERNEL_FOLDER)  # wherever the source is installed

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator | None:
        locator = cls(py_func, py_file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator

    def ensure_cache_path(self) -> None:
        make_private(Path(self._cache_path))


class _Storage(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 - numba's own attribute


class _PrivateFiles(IndexDataCacheFile):
    """A file for each version of a kernel, with a stamp of what it was compiled for.

    numba would number these files in an index. If two processes save at once, both take the same next number,
    and one kernel's machine code is then stored for another's types.
    """

    def load(self, key: Any) -> Any:
        """What was compiled for `key`; None where the file is of something else. Damage raises anything."""
        name = self._data_name(key)
        _check(self._data_path(name))  # type: ignore[no-untyped-call]  # numba is untyped
        stamp, data = self._load_data(name)
        return data if stamp == self._stamp(key) else None

    def save(self, key: Any, data: Any) -> None:
        """Write the file. Processes that save the same kernel at once write the same bytes."""
        self._save_data(self._data_name(key), (self._stamp(key), data))

    def _save_data(self, name: str, data: Any) -> None:
        content: bytes = self._dump(data)  # type: ignore[no-untyped-call]  # as above
        with self._open_for_write(self._data_path(name)) as file:  # type: ignore[no-untyped-call]  # as above
            file.write(with_checksum(content))

    def _load_data(self, name: str) -> Any:
        stored = Path(self._data_path(name)).read_bytes()  # type: ignore[no-untyped-call]  # as above
        return pickle.loads(without_checksum(stored))  # noqa: S301 - see `_check`

    def _data_name(self, key: Any) -> str:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return f"{self._index_name.removesuffix('.nbi')}.{digest}.nbc"

    def _stamp(self, key: Any) -> tuple[Any, ...]:
        return self._version, self._source_stamp, key

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[IO[bytes]]:
        with super()._open_for_write(filepath) as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)  # whatever the umask
            yield file
            file.flush()
            os.fsync(file.fileno())  # or after a power cut the name may be there, and not the content


def _check(path: str) -> None:
    """Raises FileNotFoundError for what is missing, UnsafeError for what others may have written."""
    if flaw := flaw_of(os.lstat(path)):
        raise UnsafeError(f"{path} {flaw}")


class _KernelCache(FunctionCache):
    """numba's cache of one function; nothing that goes wrong in it stops a kernel from being compiled."""

    _impl_class = _Storage

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]  # numba is untyped
        stamp = self._impl.locator.get_source_stamp()
        files = _PrivateFiles(self._cache_path, self._impl.filename_base, stamp)  # type: ignore[no-untyped-call]  # as above
        self._cache_file = files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]  # as above
        except Exception:  # as in `_PrivateFiles`
            return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        try:
            super()._save_overload(sig, data)  # type: ignore[no-untyped-call]  # as above
        except OSError:  # no space is left, or the folder has gone
            _unstored.add(self._name)
