"""Owns which rules hold in which folder: ignore files on the way down, the user's own, names of secrets.

Reads ignore files and nothing else; knows neither what is indexed nor how a folder is walked.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from ngram_cache import redaction
from ngram_cache.confined import ConfinedFolder, NoPlainFileError, TooLargeError
from ngram_cache.file_kinds import TOOL_FOLDERS, is_in_secret_folder, is_secret_path
from ngram_cache.ignore import (
    IGNORE_FILES,
    MAX_BYTES_IN_FORCE,
    MAX_RULE_BYTES,
    IgnoreLayer,
    RulesTooLargeError,
    is_ignored,
)
from ngram_cache.source import digest_of

_GIT_RULES = ".git/info/exclude"

Layers = tuple[IgnoreLayer, ...]


class SkippedFileError(Exception):
    """A file is not to be indexed; the message is a short reason, the same for all such files.

    `detail` says more where a user can do something about it.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


class FolderRules:
    """The rules that hold below one folder. `exclude` are a user's patterns, which nothing can take back.

    `checkpoint` is called every some tenths of a second at most, and may raise.
    """

    def __init__(
        self, folder: ConfinedFolder, exclude: Sequence[str], checkpoint: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._is_secret = is_in_secret_folder(f"{folder.root.as_posix()}/")
        self.checkpoint = checkpoint
        self._exclude = "\n".join(exclude).encode("utf-8", "surrogatepass")
        self._excluded: Layers | None = None
        self._outer: Layers | None = None

    def refresh(self) -> None:
        """Read the rules again that lie outside the folder, when they are needed next."""
        self._outer = None

    def top(self) -> Layers:
        """The layers that hold in the folder itself. SkippedFileError when it is not to be read."""
        if self._excluded is None:
            self._excluded = (self._parsed(self._exclude, "the setting index.exclude"),)
        if self._outer is None:
            self._outer = self._outer_layers()
        return self.inside("", self._outer)

    def inside(self, path: str, above: Layers) -> Layers:
        """The layers that hold in a folder that is not ignored, given those above it."""
        layers = (*above, *self._own_layers(self._folder, path, base=path))
        if sum(layer.num_bytes for layer in layers) > MAX_BYTES_IN_FORCE:
            where = path or str(self._folder.root)
            raise _too_large(where, f"all rules that hold there exceed {MAX_BYTES_IN_FORCE >> 10} kB")
        return layers

    def at(self, path: str) -> Layers:
        """The layers that hold inside of `path`. SkippedFileError when the rules keep it out."""
        layers = self.top()
        inner = ""
        for name in path.split("/") if path else []:
            inner = f"{inner}/{name}" if inner else name
            self.check(inner, layers, is_folder=True)
            self.check_reachable(inner)
            layers = self.inside(inner, layers)
        return layers

    def check(self, path: str, layers: Layers, *, is_folder: bool) -> None:
        """SkippedFileError when `path`, in a folder where `layers` hold, is to be left out."""
        name = path.rpartition("/")[2]
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise SkippedFileError("name not UTF-8") from error
        if is_folder and name in TOOL_FOLDERS:
            raise SkippedFileError("tool folder")
        if self._judges(self._excluded or (), path, is_folder=is_folder):
            raise SkippedFileError("excluded")
        if self._judges(layers, path, is_folder=is_folder):
            raise SkippedFileError("ignored")
        if not is_folder and (self._is_secret or is_secret_path(path)):
            raise SkippedFileError("secret")

    def check_reachable(self, path: str) -> None:
        """SkippedFileError when `path` is a link or lies behind one. It may be missing."""
        try:
            status = self._folder.status(path)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise SkippedFileError("unreadable") from error
        if stat.S_ISLNK(status.st_mode):
            raise SkippedFileError("symbolic link")

    def _judges(self, layers: Layers, path: str, *, is_folder: bool) -> bool:
        try:
            return is_ignored(layers, path, is_folder=is_folder, checkpoint=self.checkpoint)
        except RulesTooLargeError as error:
            raise _too_large(path, str(error)) from error

    def _own_layers(
        self, folder: ConfinedFolder, path: str, *, base: str = "", above: str = ""
    ) -> Iterator[IgnoreLayer]:
        for name in IGNORE_FILES:
            yield from self._read(folder, f"{path}/{name}" if path else name, base=base, above=above)

    def _outer_layers(self) -> Layers:
        """The rules of the work tree that the root lies in, unless they ignore the root itself."""
        root = self._folder.root
        for top in (root, *root.parents):
            if (top / ".git").exists():
                break
        else:
            return ()
        outside = ConfinedFolder(top)
        names = root.relative_to(top).parts
        layers = [*self._read(outside, _GIT_RULES, above="/".join(names))]
        for depth in range(len(names)):
            above = "/".join(names[depth:])
            layers += self._own_layers(outside, "/".join(names[:depth]), above=above)
        return () if any(layer.ignores_root(self.checkpoint) for layer in layers) else tuple(layers)

    def _read(self, folder: ConfinedFolder, path: str, **place: str) -> Iterator[IgnoreLayer]:
        """One file's layer; nothing where there is no such plain file.

        SkippedFileError beyond the limits, and where nobody knows what the file says.
        """
        self.checkpoint()
        try:
            data = folder.read(path, MAX_RULE_BYTES)
        except TooLargeError as error:
            raise _too_large(
                str(folder.root / path), f"it is larger than {MAX_RULE_BYTES >> 10} kB"
            ) from error
        except (FileNotFoundError, NotADirectoryError, NoPlainFileError):
            return
        except OSError as error:
            raise SkippedFileError("unreadable") from error
        yield self._parsed(data, str(folder.root / path), **place)

    def _parsed(self, data: bytes, source: str, **place: str) -> IgnoreLayer:
        try:
            return IgnoreLayer.parse(
                data, **place, checkpoint=self.checkpoint, ignores_case=self._folder.ignores_case
            )
        except RulesTooLargeError as error:
            raise _too_large(source, str(error)) from error


@cache
def rules_fingerprint() -> str:
    """A name for all that says what of a folder is indexed; what was indexed under another is not used."""
    of_files = digest_of("file_kinds", "glob", "ignore", "repository", "rules", "walk")
    return f"{redaction.fingerprint()} {of_files}"


def is_rule_file(path: str) -> bool:
    """Whether a change of `path` may change what is ignored."""
    return path.rpartition("/")[2] in IGNORE_FILES or path == _GIT_RULES


def _too_large(source: str, reason: str) -> SkippedFileError:
    detail = f"What {source} speaks of is not indexed: {reason}."
    return SkippedFileError("ignore rules too large", detail)
