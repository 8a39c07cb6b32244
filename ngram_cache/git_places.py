"""Finds git's rules for a folder outside of it: in the work tree, the git folder and the user's files.

Does not run git. `.git` files and git's configuration may be hostile, so the number and size of the files
that are read are bounded.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from ngram_cache.confined import ConfinedFolder, NoPlainFileError
from ngram_cache.construction import never_stop
from ngram_cache.file_names import name_in

MAX_CONFIG_BYTES = 256 << 10
MAX_CONFIG_FILES = 16
MAX_EXCLUDE_FILES = 8

_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s*"(?:[^"\\]|\\.)*")?\s*\]', re.ASCII)
# A value continues on the next line after a backslash; a comment does not. A name alone means true.
_VARIABLE = re.compile(
    r"""([A-Za-z][A-Za-z0-9-]*)[ \t]*"""
    r"""(?:=((?:[^"\\\n#;]|\\(?:.|\n)|"(?:[^"\\\n]|\\(?:.|\n))*+"?)*+)|(?=[\n;#]|$))"""
)
_OTHER = re.compile(r"[^\n]*\n?")
_BLANK = re.compile(r"\s*+")
_TRUE, _FALSE = "true", {"", "false", "no", "off", "0"}
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\n": ""}

Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """The work trees around a folder with their files of rules, the outermost first, and the user's files.

    `ignores_case` is what git calls core.ignorecase. `stamps` cover all files that this depends on, missing
    ones included.
    """

    work_trees: tuple[tuple[Path, Path], ...]
    user_files: tuple[Path, ...]
    ignores_case: bool
    stamps: dict[Path, Stamp]


@dataclass(slots=True)
class _Reading:
    """The files read so far; `excludes` are all rule files that any configuration names."""

    root: Path
    checkpoint: Callable[[], None]
    stamps: dict[Path, Stamp] = field(default_factory=dict)
    excludes: list[Path] = field(default_factory=list)
    ignores_case: bool = False
    num_configs: int = 0

    def may_open(self, path: Path) -> bool:
        return "\0" not in str(path) and not is_on_another_share(path, self.root)


def stamp_of(path: Path) -> Stamp:
    """Identify a version of a file; None if it cannot be seen."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def find_places(
    root: Path, checkpoint: Callable[[], None] = never_stop, *, follows_git_dir: bool = True
) -> GitPlaces:
    """Find the places of the rules of `root`, a resolved path.

    Raises OSError if a file exists and cannot be read, or if there are too many. If several files of rules
    are named, git takes the last. Here all count: that excludes more, never less. In the same way, a
    repository that `GIT_DIR` names counts beside the one around `root`, if this `follows_git_dir`.
    """
    reading = _Reading(root, checkpoint)
    git_folders = _git_folders(reading, follows_git_dir=follows_git_dir)
    if not git_folders:
        return GitPlaces((), (), ignores_case=False, stamps=reading.stamps)
    outermost, _ = git_folders[0]
    own = Path(os.environ.get("XDG_CONFIG_HOME") or _at_home("~/.config")) / "git"
    chosen = [os.environ.get(f"GIT_CONFIG_{scope}", "") for scope in ("SYSTEM", "GLOBAL")]
    users = [Path("/etc/gitconfig"), *(Path(name) for name in chosen if name), own / "config"]
    reading.excludes.append(own / "ignore")
    for config in (*users, Path(_at_home("~/.gitconfig"))):
        _read_config(reading, config, outermost, may_be_closed=True)
    _take(reading, _variables_of(os.environ), outermost, outermost)
    work_trees: list[tuple[Path, Path]] = []
    for top, git in git_folders:
        common = _named(reading, git / "commondir", str, git) or git
        work_trees.append((top, common / "info/exclude"))
        for config in (common / "config", git / "config.worktree"):
            _read_config(reading, config, top)
    excludes = tuple(dict.fromkeys(reading.excludes))
    if len(excludes) > MAX_EXCLUDE_FILES:
        raise OSError(errno.EMFILE, "git's configuration names too many files of rules")
    for file in (*excludes, *(exclude for _, exclude in work_trees)):  # a link may get another target
        reading.stamps[file] = stamp_of(file)
    return GitPlaces(tuple(work_trees), excludes, reading.ignores_case, reading.stamps)


def _git_folders(reading: _Reading, *, follows_git_dir: bool) -> list[tuple[Path, Path]]:
    """Return the work trees around the root with their git folders, the outermost first."""
    root, found = reading.root, list[tuple[Path, Path]]()
    if (top := work_tree(root, reading.stamps)) is not None:
        found.append((top, _git_folder(reading, top)))
    if follows_git_dir and (named := os.environ.get("GIT_DIR")):
        around = Path(os.path.realpath(os.environ.get("GIT_WORK_TREE") or root))
        found.append((around if name_in(around, root) is not None else root, Path(os.path.realpath(named))))
    return sorted(dict.fromkeys(found), key=lambda pair: len(pair[0].parts))


def _variables_of(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the configuration in the environment: that of `git -c`, and numbered ones. Raises OSError."""
    try:
        for text in shlex.split(environment.get("GIT_CONFIG_PARAMETERS", "")):
            name, is_given, value = text.partition("=")
            yield _without_subsection(name), value if is_given else _TRUE
        for number in range(int(environment.get("GIT_CONFIG_COUNT") or 0)):
            name, value = (environment[f"GIT_CONFIG_{part}_{number}"] for part in ("KEY", "VALUE"))
            yield _without_subsection(name), value
    except (ValueError, KeyError) as error:
        raise OSError(errno.EINVAL, "the GIT_CONFIG variables are not as git sets them") from error


def _without_subsection(name: str) -> str:
    return f"{name.partition('.')[0]}.{name.rpartition('.')[2]}".lower()


def opened(path: Path) -> tuple[ConfinedFolder, str]:
    """Open the folder of `path` and return it with the name. `path` may be a link."""
    place = Path(os.path.realpath(path))
    return ConfinedFolder(place.parent), place.name


def is_on_another_share(path: PurePath, root: PurePath) -> bool:
    """Return whether opening `path` would contact a file server that `root` is not on."""
    return path.drive.startswith("\\\\") and path.drive.lower() != root.drive.lower()


def work_tree(folder: Path, stamps: dict[Path, Stamp] | None = None) -> Path | None:
    """Return the innermost folder around `folder`, a resolved path, or itself, that git treats as a work
    tree.

    A `.git` folder that is not git's own is skipped, as git does, and noted in `stamps`. If there is no other
    one, its rules count.
    """
    passed: Path | None = None
    for top in (folder, *folder.parents):
        git = top / ".git"
        if os.path.lexists(git):
            if not _lacks_head(git):
                return top
            passed = passed or top
        if stamps is not None:
            stamps[git] = stamp_of(git)
    return passed


def _lacks_head(git: Path) -> bool:
    try:
        os.lstat(git / "HEAD")
    except FileNotFoundError:
        return True
    except OSError:  # a `.git` file has no entries; an unreadable folder may be git's
        return False
    return False


def _git_folder(reading: _Reading, top: Path) -> Path:
    """Return the `.git` folder, or the one that a `.git` file names in worktrees and submodules."""

    def named(text: str) -> str:
        return text.removeprefix("gitdir:") if text.startswith("gitdir:") else ""

    return _named(reading, top / ".git", named, top) or top / ".git"


def _named(reading: _Reading, file: Path, name_in: Callable[[str], str], base: Path) -> Path | None:
    """Return the folder that a small file names, by a path that may be relative to `base`."""
    if file.is_dir():
        return None
    name = name_in(_text(reading, file)).strip()
    return base / name if name and reading.may_open(base / name) else None


def _text(reading: _Reading, file: Path, *, may_be_closed: bool = False) -> str:
    """Return the beginning of a regular file's text; empty if there is none. Raises OSError if unreadable.

    A file that `may_be_closed` to this user counts as missing, as with git: a home may be another user's.
    """
    reading.checkpoint()
    reading.stamps[file] = stamp_of(file)
    folder, name = opened(file)
    try:
        data = folder.read(name, MAX_CONFIG_BYTES)
    except (FileNotFoundError, NotADirectoryError, NoPlainFileError, ValueError):
        return ""
    except PermissionError:
        if may_be_closed:
            return ""
        raise
    return data.decode("utf-8", "surrogateescape")


def _read_config(reading: _Reading, file: Path, top: Path, *, may_be_closed: bool = False) -> None:
    """Collect the rule files that a configuration names, also in files that it includes on any condition."""
    if file in reading.stamps:
        return
    reading.num_configs += 1
    if reading.num_configs > MAX_CONFIG_FILES:
        raise OSError(errno.EMFILE, "git's configuration has too many files")
    variables = _variables(_text(reading, file, may_be_closed=may_be_closed))
    _take(reading, variables, file.parent, top)


def _take(reading: _Reading, variables: Iterable[tuple[str, str]], folder: Path, top: Path) -> None:
    """Follow the variables of one source, whose included files are relative to `folder`."""
    for name, value in variables:
        if name == "core.ignorecase":
            reading.ignores_case = reading.ignores_case or value.lower() not in _FALSE
        path = (top if name == "core.excludesfile" else folder) / _at_home(value)
        if not value or not reading.may_open(path):
            continue
        if name == "core.excludesfile":
            reading.excludes.append(path)
        elif name in {"include.path", "includeif.path"}:
            _read_config(reading, path, top, may_be_closed=True)


def _at_home(name: str) -> str:
    return os.path.expanduser(name)  # noqa: PTH111  pathlib's raises for an unknown user


def _variables(text: str) -> Iterator[tuple[str, str]]:
    """Yield the variables of a configuration as `section.name` in lower case, without subsections."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    section = ""
    at = _end(_BLANK, text, 0)
    while at < len(text):
        if (head := _SECTION.match(text, at)) is not None:
            section, at = head[1].lower(), head.end()
        elif (variable := _VARIABLE.match(text, at)) is not None:
            yield f"{section}.{variable[1].lower()}", _TRUE if variable[2] is None else _unquoted(variable[2])
            at = _end(_OTHER, text, variable.end())
        else:
            at = _end(_OTHER, text, at)
        at = _end(_BLANK, text, at)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the end of the first match of a pattern, from `at` on."""
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _unquoted(value: str) -> str:
    """Return a value without its quotes and escapes."""
    letters: list[str] = []
    rest = iter(value)
    for letter in rest:
        if letter == "\\":
            escaped = next(rest, "")
            letters.append(_ESCAPES.get(escaped, escaped))
        elif letter != '"':
            letters.append(letter)
    return "".join(letters).strip()
