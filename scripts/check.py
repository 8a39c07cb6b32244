"""Reports stale locks and what exceeds its cap on size: python -m scripts.check (make lock-check)

Reads pyproject.toml, the locks, the metadata of installed packages and the tree. Needs no network.
"""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import lockfile
from scripts.budget import find_overruns
from scripts.lockfile import GROUPS, PROJECT, TORCH, Declared, Locked

_SYSTEMS = (
    ("linux", "Linux", "posix", "x86_64"),
    ("linux", "Linux", "posix", "aarch64"),
    ("darwin", "Darwin", "posix", "arm64"),
    ("win32", "Windows", "nt", "AMD64"),
)
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES: tuple[dict[str, str], ...] = tuple(
    {
        "sys_platform": platform, "platform_system": system, "os_name": name, "platform_machine": machine,
        "python_version": python, "python_full_version": f"{python}.0", "extra": "",
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
    }
    for (platform, system, name, machine), python in itertools.product(_SYSTEMS, _PYTHONS)
)  # fmt: skip


def main() -> int:
    """Print what is wrong with the locks and sizes in the current folder; return 1 if anything is."""
    found = find_problems(Path.cwd())
    for problem in found:
        sys.stderr.write(f"The locks are stale: {problem}\n")
    if found:
        sys.stderr.write("Make them anew: make lock\n")
    overruns = list(find_overruns(Path.cwd()))
    for overrun in overruns:
        sys.stderr.write(f"The tree is too large: {overrun}\n")
    if overruns:
        sys.stderr.write(
            "Remove what is no longer needed, or raise the cap in scripts/budget.py and say why.\n"
        )
    return 1 if found or overruns else 0


def find_problems(root: Path) -> list[str]:
    """Return the problems of the locks in `root`, in sentences; empty if they fit pyproject.toml."""
    declared = Declared.of(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")))
    try:
        groups = lockfile.read_all(root)
    except (OSError, ValueError) as error:
        return [f"{error}."]
    addresses = [g for g in GROUPS if "://" in (root / f"{g}.lock").read_text(encoding="utf-8")]
    problems = [f"{group}.lock holds an address." for group in addresses]
    problems += _missing(declared, groups)
    problems += _unreachable(declared, groups)
    problems += _unmet(groups)
    return list(dict.fromkeys(problems))


def _missing(declared: Declared, groups: Mapping[str, list[Locked]]) -> Iterator[str]:
    """Declared packages that are missing from their lock, on any machine."""
    runs = [*groups[lockfile.RUNTIME], *groups[TORCH]]
    for group, requirements in declared.by_group.items():
        entries = [*groups[group], *(runs if group != lockfile.RUNTIME else groups[TORCH])]
        for requirement, machine in itertools.product(map(Requirement, requirements), MACHINES):
            if not _met(requirement, entries, machine):
                place = f"Python {machine['python_version']} on {machine['sys_platform']}"
                yield f"{requirement} is not met by {group}.lock for {place}."


def _met(requirement: Requirement, entries: Iterable[Locked], machine: Mapping[str, str]) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate(dict(machine)):
        return True
    named = (entry for entry in entries if entry.name == canonicalize_name(requirement.name))
    return any(
        _applies(entry, machine) and requirement.specifier.contains(entry.version, prereleases=True)
        for entry in named
    )


def _applies(entry: Locked, machine: Mapping[str, str]) -> bool:
    return not entry.marker or _parsed(entry.marker).evaluate(dict(machine))


@functools.cache
def _parsed(marker: str) -> Marker:
    return Marker(marker)


def _unreachable(declared: Declared, groups: Mapping[str, list[Locked]]) -> Iterator[str]:
    """Locked packages that no declared package needs."""
    entries = [entry for group in GROUPS for entry in groups[group]]
    roots = set().union(*(declared.names(group) for group in declared.by_group))
    needed = lockfile.reachable(entries, roots)
    for entry in entries:
        if entry.name not in needed or (entry.parents == (PROJECT,) and entry.name not in roots):
            yield f"{entry.name}=={entry.version} is locked, but nothing needs it."


def _unmet(groups: Mapping[str, list[Locked]]) -> Iterator[str]:
    """Packages that installed ones need in their locked versions, and that the locks lack."""
    entries = [entry for group in GROUPS for entry in groups[group]]
    here = {"extra": ""}
    for entry in entries:
        try:
            package = importlib.metadata.distribution(entry.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if package.version != entry.version:
            continue
        for text in package.requires or ():
            requirement = Requirement(text)
            named = [one for one in entries if one.name == canonicalize_name(requirement.name)]
            is_wanted = requirement.marker is None or requirement.marker.evaluate(here)
            if is_wanted and not any(requirement.specifier.contains(one.version, True) for one in named):
                yield f"{entry.name}=={entry.version} needs {requirement}, which is not locked."


if __name__ == "__main__":
    sys.exit(main())
