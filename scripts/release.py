"""Builds what a release consists of, and checks it: python -m scripts.release (make release)

    [--out FOLDER] [--commit NAME] [--node-modules FOLDER] [--without-editors] [--twice]

From a commit's files alone, in a folder that is gone afterwards: the wheel, the versions that it was tested
with, the source archive, the VS Code extension and an archive for Neovim. The same commit gives the same
bytes, whenever and wherever it is built with the same locked tools: times are the commit's; the user's modes,
time zone and language do not count. `--twice` builds in two folders under different conditions and compares.
Needs git, and npm with what the extension is built with (`npm ci` fetches it, or a folder holds it). twine
checks where it is installed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.archives import deterministic_tar, problems_of

_UMASK = 0o022
_SUMS = "SHA256SUMS"
# Nothing of these may show in what is built: the second build has others.
_CONDITIONS: tuple[Mapping[str, str], ...] = (
    {"TZ": "UTC", "LC_ALL": "C"},
    {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"},
)


def main() -> int:
    """Build into a folder, `dist` by default. Returns 1 where something is not as it must be."""
    arguments = _parse()
    out: Path = arguments.out.absolute()
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    _build(arguments, out, _CONDITIONS[0])
    archives = [file for file in sorted(out.iterdir()) if file.suffix != ".txt"]
    found = [problem for file in archives for problem in problems_of(file)]
    found += _checked_by_twine(out)
    sums = _sums(out)
    if arguments.twice:
        found += _differing(arguments, sums)
    (out / _SUMS).write_text(
        "".join(f"{digest}  {name}\n" for name, digest in sums.items()), encoding="ascii"
    )
    for name, digest in sums.items():
        sys.stdout.write(f"{(out / name).stat().st_size / 1e6:8.2f} MB  {digest[:16]}  {name}\n")
    for problem in found:
        sys.stderr.write(f"{problem}\n")
    return 1 if found else 0


def _differing(arguments: argparse.Namespace, sums: Mapping[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as again:
        _build(arguments, Path(again), _CONDITIONS[1])
        others = _sums(Path(again))
    return [f"{name} differs when it is built again." for name in sums if sums[name] != others.get(name)]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Builds and checks what a release consists of.")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="made anew")
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--node-modules", type=Path, help="what builds the extension, else npm ci fetches it")
    parser.add_argument(
        "--without-editors", action="store_true", help="the wheel and the source archive alone"
    )
    parser.add_argument("--twice", action="store_true", help="build again elsewhere and compare")
    return parser.parse_args()


def _build(arguments: argparse.Namespace, out: Path, conditions: Mapping[str, str]) -> None:
    """All files of the release of a commit, in `out`."""
    epoch = _output(["git", "log", "-1", "--format=%ct", arguments.commit])
    environment = {**os.environ, **conditions, "SOURCE_DATE_EPOCH": epoch, "PYTHON": sys.executable}
    with tempfile.TemporaryDirectory(prefix="slipstream-release-") as name:
        tree = Path(name, "tree")
        _export(arguments.commit, tree)
        for target in ("wheel", "sdist"):
            command = [sys.executable, "-P", "-m", "hatchling", "build", "-t", target, "-d", str(out)]
            _run(command, tree, environment)
        if not arguments.without_editors:
            _build_extension(tree, out, environment, arguments.node_modules)
            build_plugin(tree, out, int(epoch))


def _export(commit: str, tree: Path) -> None:
    """The commit's files, with modes that do not depend on this user's habits."""
    archive = tree.with_suffix(".tar")
    command = ["git", "-c", "tar.umask=0022", "archive", "--output", str(archive), commit]
    _run(command, Path.cwd(), os.environ)
    with tarfile.open(archive) as files:
        files.extractall(tree, filter="data")


def _build_extension(tree: Path, out: Path, environment: Mapping[str, str], packages: Path | None) -> None:
    folder = tree / "editors" / "vscode"
    npm = shutil.which("npm") or "npm"
    if packages is None:
        _run([npm, "ci"], folder, environment)
    else:
        shutil.copytree(packages, folder / "node_modules", symlinks=True)
    # The packer writes times in the local time zone.
    _run([npm, "run", "package"], folder, {**environment, "TZ": "UTC"})
    (vsix,) = folder.glob("*.vsix")
    shutil.copy(vsix, out)


def build_plugin(tree: Path, out: Path, epoch: int) -> None:
    """Neovim's plugin with its folder on top, as plugin managers and `packadd` want it."""
    version = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    folder = tree / "editors" / "neovim"
    shutil.copy(tree / "LICENSE", folder)
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    held = {f"slipstream.nvim/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}
    held["slipstream.nvim/doc/tags"] = help_tags(folder / "doc" / "slipstream.txt").encode()
    (out / f"slipstream.nvim-{version}.tar.gz").write_bytes(deterministic_tar(held, epoch))


def help_tags(help_file: Path) -> str:
    """Neovim's list of the places that `:help` finds in a file, as `:helptags` writes it."""
    names = re.findall(r"(?:^|(?<=\s))\*([^\s*|]+)\*(?=\s)", help_file.read_text(encoding="utf-8"))
    return "".join(f"{name}\t{help_file.name}\t/*{name}*\n" for name in sorted(names))


def _checked_by_twine(out: Path) -> list[str]:
    if importlib.util.find_spec("twine") is None:
        sys.stdout.write("twine is not installed here: its check is left out.\n")
        return []
    files = [str(file) for file in sorted(out.iterdir()) if "completion" in file.name]
    command = [sys.executable, "-P", "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"twine refuses it: {done.stdout}{done.stderr}"]


def _sums(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Raises SystemExit, with what the program said, where it fails."""
    umask = _UMASK if os.name == "posix" else -1
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, umask=umask
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
