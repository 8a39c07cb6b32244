"""Builds and checks the VS Code extension in a copy of the tree, so that the work folder stays clean.

Owns the copy, the package made from it, and that one process at a time works there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

from filelock import FileLock

from tests.editors.programs import FOLDER, ROOT, find

COPIES = FOLDER / "extension"
LOCK = FOLDER / "extension.lock"

# What goes into the package: the extension, and the server that it brings.
FOLDERS = ("editors/vscode", "ngram_cache", "completion_engine", "lsp_server", "scripts")
LOCKS = ("requirements.lock", "requirements-torch.lock", "requirements-build.lock", "requirements-test.lock")
FILES = ("pyproject.toml", *LOCKS, "README.md", "LICENSE")
NUM_KEPT = 3  # copies
GENERATED = ("node_modules", "out", "server", "__pycache__", "*.vsix")

BUILD_TIMEOUT_S = 540  # less than a test may take, so that a build that hangs shows its output


def package() -> Path:
    """The extension as a .vsix, built where the tree has changed since.

    Raises MissingError without Node or what the extension is built with.
    """
    with FileLock(LOCK):
        folder = _copy()
        if not any(folder.glob("*.vsix")):
            _npm(folder, "run", "package")
        (vsix,) = folder.glob("*.vsix")
        return vsix


def run_npm(*arguments: str) -> str:
    """Run npm in the copy of the extension; returns what it said. Raises MissingError as `package` does."""
    with FileLock(LOCK):
        return _npm(_copy(), *arguments)


def _copy() -> Path:
    """The extension's folder in a copy of the tree as it is now, with its dependencies."""
    copy = COPIES / _fingerprint()
    folder = copy / "editors" / "vscode"
    if not (copy / "complete").is_file():
        shutil.rmtree(copy, ignore_errors=True)
        _forget_old_copies()
        for name in FOLDERS:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns(*GENERATED))
        for name in FILES:
            shutil.copy2(ROOT / name, copy / name)
        packages = find("extension-packages", "node_modules")
        shutil.copytree(packages, folder / "node_modules", symlinks=True, copy_function=os.link)
        (copy / "complete").touch()
    return folder


def _forget_old_copies() -> None:
    """Leave the newest ones: tests of a tree that has changed meanwhile may still work in them."""
    COPIES.mkdir(parents=True, exist_ok=True)
    for copy in sorted(COPIES.iterdir(), key=lambda path: path.stat().st_mtime)[:-NUM_KEPT]:
        shutil.rmtree(copy, ignore_errors=True)


def _fingerprint() -> str:
    paths = [ROOT / name for name in FILES]
    for name in FOLDERS:
        paths += (path for path in (ROOT / name).rglob("*") if path.is_file() and not _is_generated(path))
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(b"%b %d\n" % (str(path.relative_to(ROOT)).encode(), path.stat().st_size))
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _is_generated(path: Path) -> bool:
    return any(fnmatch(part, pattern) for part in path.parts for pattern in GENERATED)


def _npm(folder: Path, *arguments: str) -> str:
    npm = find("node", "npm")
    path = os.pathsep.join([str(npm.parent), os.environ["PATH"]])
    try:
        done = subprocess.run(
            [str(npm), *arguments],
            cwd=folder,
            env={**os.environ, "PATH": path, "PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
        code, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        code, said = -1, error.stdout or b""
    assert code == 0, f"npm {' '.join(arguments)} failed ({code}):\n{said.decode(errors='replace')}"
    return said.decode()
