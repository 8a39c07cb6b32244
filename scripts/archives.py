"""The allowed and required content of release files, and archives whose bytes depend on their content only.

Pure, except for reading the checked file.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("ngram_cache", "completion_engine", "lsp_server")
_DRAFTERS = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
_CONTENT = (
    *(f"{package}/{name}" for package in PACKAGES for name in ("__init__.py", "py.typed")),
    *(
        f"completion_engine/drafters/{drafter}/{name}"
        for drafter in _DRAFTERS
        for name in ("config.json", "drafter.safetensors")
    ),
)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a kind of file holds: names under `root` that must be there, and what no name may look like.

    A file of more than `max_bytes` is refused: the index for Python packages takes 100 MB.
    """

    root: str
    needed: tuple[str, ...]
    forbidden: str
    max_bytes: int


_LEFTOVERS = r"\.(pyc|orig|rej|log)$|(^|/)(\.git|\.venv|__pycache__|node_modules)(/|$)"
_NO_TESTS = rf"(^|/)(tests?|testing|docs)/|{_LEFTOVERS}"
_ELSEWHERE = rf"^(?!({'|'.join(PACKAGES)}|slipstream_completion-[\d.]+\.dist-info)/)"
_SOURCE = (
    *_CONTENT,
    "pyproject.toml",
    "LICENSE",
    "README.md",
    "requirements.lock",
    "requirements-torch.lock",
)
_EXTENSION = (
    "package.json", "out/extension.js", "out/statistics.js", "out/third-party-notices.txt",
    "server/install.py", "server/requirements.lock", "server/requirements-torch.lock",
    "server/sbom.cdx.json",
)  # fmt: skip
_PLUGIN = (
    "doc/slipstream.txt", "doc/tags", "lsp/slipstream.lua", "lua/slipstream/init.lua",
    "plugin/slipstream.lua", "LICENSE",
)  # fmt: skip
RULES: Mapping[str, Rules] = {
    ".whl": Rules("", _CONTENT, f"{_NO_TESTS}|{_ELSEWHERE}", 80_000_000),
    "completion.tar.gz": Rules(r"slipstream_completion-[^/]+/", _SOURCE, _NO_TESTS, 80_000_000),
    ".vsix": Rules("extension/", _EXTENSION, rf"{_NO_TESTS}|\.(ts|map)$", 100_000_000),
    "nvim.tar.gz": Rules(r"slipstream\.nvim/", _PLUGIN, _LEFTOVERS, 1_000_000),
}


def problems_of(file: Path) -> list[str]:
    """Return the problems of a release file, in sentences."""
    rules = rules_for(file.name)
    if rules is None:
        return [f"{file.name} is nothing that a release consists of."]
    names = list(_names(file))
    missing = [name for name in rules.needed if not _has(names, rules.root, name)]
    strange = [name for name in names if re.search(rules.forbidden, name) or _leaves(name)]
    found = [f"{file.name} lacks {name}." for name in missing]
    found += [f"{file.name} holds {name}, which is not to be in it." for name in strange]
    if len(names) != len(set(names)):
        found.append(f"{file.name} holds a name twice.")
    if file.stat().st_size > rules.max_bytes:
        found.append(f"{file.name} is larger than {rules.max_bytes / 1e6:.0f} MB.")
    return found


def rules_for(name: str) -> Rules | None:
    """The rules for a file of this name; None where it is of no release."""
    kind = re.sub(r"^slipstream[_.]?(completion|nvim)-[\d.]*\d\.tar", r"\1.tar", name)
    return RULES.get(kind) or RULES.get(Path(name).suffix)


def deterministic_tar(files: Mapping[str, bytes], epoch: int) -> bytes:
    """Return a gzipped tar of files by name: sorted, unowned, readable by all, with the time `epoch` (s)."""
    held = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=held, mode="wb", filename="", mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(files[name]), epoch, 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return held.getvalue()


def _names(file: Path) -> Iterator[str]:
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            yield from (entry.filename for entry in archive.infolist() if not entry.is_dir())
    else:
        with tarfile.open(file) as archive:
            yield from (entry.name for entry in archive.getmembers() if not entry.isdir())


def _has(names: list[str], root: str, name: str) -> bool:
    wanted = re.compile(root + re.escape(name))
    return any(wanted.fullmatch(found) for found in names)


def _leaves(name: str) -> bool:
    """Whether an entry would be unpacked outside of the folder that it is unpacked in."""
    return name.startswith("/") or ".." in name.split("/") or ":" in name
