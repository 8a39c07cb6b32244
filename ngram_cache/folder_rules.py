"""The rules in force in each folder: its ignore files, the user's own, and names of secrets."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ngram_cache.confined import ConfinedFolder, NoPlainFileError, TooLargeError
from ngram_cache.file_names import TOOL_FOLDERS, is_in_secret_folder, is_secret_path, name_in
from ngram_cache.git_places import GitPlaces, Stamp, find_places, opened, stamp_of
from ngram_cache.ignore import (
    IGNORE_FILES,
    MAX_BYTES_IN_FORCE,
    MAX_RULE_BYTES,
    IgnoreLayer,
    RulesTooLargeError,
    is_ignored,
)

_GIT_RULES = ".git/info/exclude"
MAX_WORK_TREES = 1_000  # below one root

Layers = tuple[IgnoreLayer, ...]

# A cache of the rules of each folder, or the reason that it is not read; valid as long as a caller keeps it.
KnownLayers = dict[str, "Layers | SkippedFileError"]


class SkippedFileError(Exception):
    """The file is not to be indexed. The message is a short reason, the same for all such files.

    `detail` adds what the user can do about it, if anything.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class _Outer:
    """The rules of a folder that git stores elsewhere. Another `digest` means other rules.

    `stamps` identify the versions of all files that were looked at; `files` are those that hold rules, or
    would.
    """

    layers: Layers
    digest: bytes
    stamps: dict[Path, Stamp]
    files: frozenset[Path]
    ignores_case: bool


class FolderRules:
    """The rules in force below one folder. `exclude` are the user's patterns, which no ignore file can
    revoke.

    `exclude_around` are such patterns of folders around this one, by their resolved paths. `checkpoint` is
    called at least every few tenths of a second, and may raise.
    """

    def __init__(
        self,
        folder: ConfinedFolder,
        exclude: Sequence[str],
        checkpoint: Callable[[], None],
        exclude_around: Sequence[tuple[Path, Sequence[str]]] = (),
    ) -> None:
        self._folder = folder
        self._is_secret = is_in_secret_folder(f"{folder.root.as_posix()}/")
        self.checkpoint = checkpoint
        around = [(name_in(outer, folder.root), patterns) for outer, patterns in exclude_around]
        lines = [("", exclude), *((name.as_posix(), patterns) for name, patterns in around if name)]
        self._exclude = [(name, "\n".join(some).encode("utf-8", "surrogatepass")) for name, some in lines]
        self._excluded: Layers | None = None
        self._outer: dict[str, _Outer] = {}  # by path: the folder itself and the work trees in it

    @property
    def outer_files(self) -> frozenset[Path]:
        """Return the files outside of the walked folders that hold rules, or would; none before a walk."""
        return frozenset().union(*(outer.files for outer in tuple(self._outer.values())))

    def refresh(self) -> None:
        """Read the rules outside of the walked folders again when they are needed next."""
        self._outer, self._excluded = {}, None

    def have_changed(self) -> bool:
        """Return whether the rules outside of the walked folders have changed since they were read."""
        return not self._outer or any(self._has_changed(*known) for known in tuple(self._outer.items()))

    def _has_changed(self, path: str, before: _Outer) -> bool:
        self.checkpoint()
        if all(stamp_of(file) == stamp for file, stamp in before.stamps.items()):
            return False
        try:
            outer = self._read_outer(path)
        except SkippedFileError:
            self._outer.pop(path, None)
            return True
        self._outer[path] = replace(outer, layers=() if path else outer.layers)
        return before.digest != outer.digest

    def top(self) -> Layers:
        """Return the layers of the folder itself. Raises SkippedFileError if it is not to be read."""
        outer = self._outer.get("")
        if outer is None:
            self._outer[""] = outer = self._read_outer("")
        if self._excluded is None:
            self._excluded = tuple(
                self._parsed(data, "the setting index.exclude", above=above) for above, data in self._exclude
            )
            if any(layer.ignores_root(self.checkpoint) for layer in self._excluded):
                self._excluded = None
                raise SkippedFileError("excluded")
        return self.inside("", outer.layers)

    def inside(self, path: str, above: Layers) -> Layers:
        """Return the layers of a folder that is not ignored, given those above it."""
        layers = (*above, *self._work_tree_layers(path), *self._own_layers(path))
        if sum(layer.num_bytes for layer in layers) > MAX_BYTES_IN_FORCE:
            where = path or str(self._folder.root)
            raise _too_large(where, f"its ignore rules exceed {MAX_BYTES_IN_FORCE >> 10} kB")
        return layers

    def at(self, path: str, known: KnownLayers | None = None) -> Layers:
        """Return the layers inside `path`. Raises SkippedFileError if the rules exclude it.

        `known` is a cache of layers, which is read and filled.
        """
        known = {} if known is None else known
        layers = _once(known, "", self.top)
        inner = ""
        for name in path.split("/") if path else []:
            inner = f"{inner}/{name}" if inner else name
            layers = _once(known, inner, partial(self._enter, inner, layers))
        return layers

    def _enter(self, path: str, above: Layers) -> Layers:
        self.check(path, above, is_folder=True)
        self.check_reachable(path)
        return self.inside(path, above)

    def check(self, path: str, layers: Layers, *, is_folder: bool) -> None:
        """Raise SkippedFileError if `path`, in a folder with `layers`, is excluded."""
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
        """Raise SkippedFileError if `path` is a link or is below one. It may be missing."""
        try:
            status = self._folder.status(path)
        except (FileNotFoundError, NotADirectoryError):
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

    def _own_layers(self, path: str) -> Iterator[IgnoreLayer]:
        for name in IGNORE_FILES:
            file = f"{path}/{name}" if path else name
            if (data := self._read(self._folder, file)) is not None:
                yield self._parsed(data, str(self._folder.root / file), base=path)

    def _work_tree_layers(self, path: str) -> Layers:
        """Return the rules that git stores elsewhere for a work tree below the root; else none."""
        if not path or not (path in self._outer or os.path.lexists(self._folder.root / path / ".git")):
            return ()
        if path not in self._outer and len(self._outer) > MAX_WORK_TREES:
            raise _too_large(path, f"more than {MAX_WORK_TREES:,} work trees are in the folder")
        # Layers may be large, so only the caller keeps them. The first version is kept for `have_changed`.
        outer = self._read_outer(path)
        self._outer.setdefault(path, replace(outer, layers=()))
        return outer.layers

    def _read_outer(self, base: str) -> _Outer:
        """Return the rules that git stores elsewhere for the folder `base`, without those that ignore the
        folder.

        For the root these are all rules of the work tree around it, for another folder those of its own work
        tree.
        """
        root = self._folder.root / base
        try:
            places = find_places(root, self.checkpoint, follows_git_dir=not base)
        except OSError as error:
            raise SkippedFileError("unreadable") from error
        stamps, digest = places.stamps, hashlib.sha256(bytes([places.ignores_case]))
        files: list[Path] = []
        layers: list[IgnoreLayer] = []
        begins_here = not base or any(top == root for top, _ in places.work_trees)
        for place, name, above, is_users in _outer_files(places, root) if begins_here else ():
            file = place.root / name
            files.append(file)
            stamps[file] = stamp_of(file)
            data = self._read(place, name, may_be_closed=is_users)
            if data is None:
                continue
            digest.update(f"{file}\0{above}\0{len(data)}\0".encode("utf-8", "surrogatepass") + data)
            layer = self._parsed(data, str(file), base=base, above=above, ignores_case=places.ignores_case)
            if not layer.ignores_root(self.checkpoint):
                # Git reads one of the user's files only, as the weakest rules: it has nothing to revoke.
                layers.append(replace(layer, only_ignore=is_users))
        return _Outer(tuple(layers), digest.digest(), stamps, frozenset(files), places.ignores_case)

    def _read(self, folder: ConfinedFolder, path: str, *, may_be_closed: bool = False) -> bytes | None:
        """Read the rules of one file; None if there is none.

        Raises SkippedFileError beyond the limits, and if it cannot be read. A link is not followed.
        """
        self.checkpoint()
        try:
            return folder.read(path, MAX_RULE_BYTES)
        except TooLargeError as error:
            raise _too_large(
                str(folder.root / path), f"it is larger than {MAX_RULE_BYTES >> 10} kB"
            ) from error
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            if may_be_closed and isinstance(error, PermissionError | NoPlainFileError):
                return None
            raise SkippedFileError("unreadable") from error

    def _parsed(
        self, data: bytes, source: str, base: str = "", above: str = "", *, ignores_case: bool = False
    ) -> IgnoreLayer:
        """Parse the rules of a file for paths below `base`; case counts unless git or the disk ignores it."""
        ignores_case = ignores_case or self._folder.ignores_case or self._ignores_case_in(base)
        try:
            return IgnoreLayer.parse(data, base, above, checkpoint=self.checkpoint, ignores_case=ignores_case)
        except RulesTooLargeError as error:
            raise _too_large(source, str(error)) from error

    def _ignores_case_in(self, path: str) -> bool:
        """Return whether git ignores case in the folder, or in a work tree around `path`."""
        known = ((f"{at}/" if at else "", outer.ignores_case) for at, outer in tuple(self._outer.items()))
        return any(ignores and f"{path}/".startswith(at) for at, ignores in known)


def _once(known: KnownLayers, path: str, find: Callable[[], Layers]) -> Layers:
    if path not in known:
        try:
            known[path] = find()
        except SkippedFileError as reason:
            known[path] = reason
    layers = known[path]
    if isinstance(layers, SkippedFileError):
        raise layers
    return layers


def _outer_files(places: GitPlaces, root: Path) -> Iterator[tuple[ConfinedFolder, str, str, bool]]:
    """Yield the files of rules outside of `root`, by folder and name, the weakest first.

    Each comes with the root's path below the folder that the rules apply to, and with whether it is a user's
    file, which may be unreadable.
    """
    for top, exclude in places.work_trees:
        above = root.relative_to(top).as_posix().removeprefix(".")
        yield from ((*opened(file), above, True) for file in places.user_files)
        yield *opened(exclude), above, False
    names = root.relative_to(places.work_trees[0][0]).parts if places.work_trees else ()
    for depth in range(len(names)):
        folder = ConfinedFolder(Path(*root.parts[: len(root.parts) - len(names) + depth]))
        yield from ((folder, name, "/".join(names[depth:]), False) for name in IGNORE_FILES)


def is_rule_file(path: str) -> bool:
    """Return whether a change of `path` can change which files are ignored."""
    return path.rpartition("/")[2] in IGNORE_FILES or f"/{path}".endswith(f"/{_GIT_RULES}")


def _too_large(source: str, reason: str) -> SkippedFileError:
    detail = f"Slipstream does not index the files that {source} concerns: {reason}."
    return SkippedFileError("ignore rules too large", detail)
