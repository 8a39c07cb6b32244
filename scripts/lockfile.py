"""The lock's form: names, versions, markers, hashes, and dependents, as text that pip installs from.

Owns reading, writing and dividing it. Does not choose versions and uses no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = "slipstream-completion"
RUNTIME, TORCH, BUILD, TEST = "requirements", "requirements-torch", "requirements-build", "requirements-test"
GROUPS = (RUNTIME, TORCH, BUILD, TEST)

# Packages that only torch's build for GPUs needs. They have their own lock, so that machines without a GPU do
# not download them.
_ONLY_FOR_GPUS = re.compile(r"nvidia-(?!ml-py).*|cuda-.*|triton")
_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9.-]+)==(?P<version>[^ \\]+)(?: ; (?P<marker>[^\\\n]+?))? \\\n"
    r"(?P<hashes>(?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
    r"(?: {4}# via (?P<parents>.+)\n)?",
    re.MULTILINE,
)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Locked:
    """One version of one package, for the machines of `marker`; "" is all. `parents` are who need it."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared dependencies of each group: requirements as pyproject.toml has them."""

    by_group: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, project: Mapping[str, Any]) -> Declared:
        """Read a parsed pyproject.toml."""
        table, build = project["project"], project["build-system"]
        extras = table["optional-dependencies"]
        return cls(
            {
                RUNTIME: tuple(table["dependencies"]),
                BUILD: (*build["requires"], *extras["build"]),
                TEST: tuple(one for name, extra in extras.items() if name != "build" for one in extra),
            }
        )

    def names(self, group: str) -> set[str]:
        """The packages that a group asks for by itself."""
        return {name_of(requirement) for requirement in self.by_group.get(group, ())}


def name_of(requirement: str) -> str:
    """The normalised name in a requirement."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def parse(text: str) -> list[Locked]:
    """The entries of a lock. Raises ValueError where a line is none that we write."""
    rest = _ENTRY.sub("", text)
    strange = [line for line in rest.splitlines() if line.strip() and not line.startswith("#")]
    if strange:
        raise ValueError(f"no line of a lock: {strange[0]!r}")
    return [
        Locked(
            found["name"],
            found["version"],
            found["marker"] or "",
            tuple(_HASH.findall(found["hashes"])),
            tuple(parent.strip() for parent in (found["parents"] or "").split(",") if parent.strip()),
        )
        for found in _ENTRY.finditer(text)
    ]


def render(entries: Iterable[Locked], heading: str) -> str:
    """A lock's text: what `parse` reads and pip installs."""
    blocks = [f"# {heading}\n# Made by `make lock`; `make lock-check` says whether it is stale.\n"]
    for entry in sorted(entries, key=lambda one: (one.name, one.marker)):
        marker = f" ; {entry.marker}" if entry.marker else ""
        hashes = " \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(entry.hashes))
        blocks.append(
            f"{entry.name}=={entry.version}{marker} \\\n{hashes}\n    # via {', '.join(entry.parents)}\n"
        )
    return "".join(blocks)


def divide(entries: Iterable[Locked], declared: Declared) -> dict[str, list[Locked]]:
    """Put every entry into the one group that brings it: runtime, then build, then tests."""
    entries = list(entries)
    runs = reachable(entries, declared.names(RUNTIME))
    builds = reachable(entries, declared.names(BUILD))
    divided: dict[str, list[Locked]] = {group: [] for group in GROUPS}
    for entry in entries:
        if entry.name == "torch" or _ONLY_FOR_GPUS.fullmatch(entry.name):
            divided[TORCH].append(entry)
        else:
            group = RUNTIME if entry.name in runs else BUILD if entry.name in builds else TEST
            divided[group].append(entry)
    return divided


def reachable(entries: Iterable[Locked], roots: Iterable[str]) -> set[str]:
    """Names that `roots` need, themselves included, by the parents in the entries."""
    children: dict[str, set[str]] = {}
    for entry in entries:
        for parent in entry.parents:
            children.setdefault(parent, set()).add(entry.name)
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += children.get(name, ())
    return found


def read_all(folder: Path) -> dict[str, list[Locked]]:
    """The groups' entries. Raises OSError, ValueError."""
    return {group: parse((folder / f"{group}.lock").read_text(encoding="utf-8")) for group in GROUPS}
