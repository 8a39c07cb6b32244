"""Lists what a release stands on, as CycloneDX 1.6: python -m scripts.sbom   (make sbom)

Names, versions and hashes come from the locks, licences from the packages that are installed here. The same
locks give the same list. Knows the standard library only.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

from scripts import lockfile
from scripts.lockfile import RUNTIME, TORCH, Locked

_SHIPPED = (RUNTIME, TORCH)


def main() -> int:
    """Print the list for the locks in the current folder."""
    sys.stdout.write(json.dumps(bill(Path.cwd()), indent=1) + "\n")
    return 0


def bill(root: Path) -> dict[str, Any]:
    """The list of what runs with the version in `root`'s pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = lockfile.read_all(root)
    entries = [entry for group in _SHIPPED for entry in groups[group]]
    own = _reference(project["name"], project["version"])
    content = json.dumps([own, *([e.name, e.version, e.hashes] for e in entries)])
    needs: dict[str, list[str]] = {own: [_reference(e.name, e.version) for e in entries if _is_root(e)]}
    for entry in entries:
        children = [_reference(one.name, one.version) for one in entries if entry.name in one.parents]
        needs[_reference(entry.name, entry.version)] = children
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": _application(project, own)},
        "components": [_component(entry) for entry in entries],
        "dependencies": [{"ref": one, "dependsOn": sorted(set(those))} for one, those in needs.items()],
    }


def _application(project: dict[str, Any], reference: str) -> dict[str, Any]:
    licences = [{"license": {"id": project["license"]}}]
    name, version = project["name"], project["version"]
    return {
        "type": "application",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "licenses": licences,
    }


def _component(entry: Locked) -> dict[str, Any]:
    """One package. Each hash is that of one of its files; a machine has the one that fits it."""
    reference = _reference(entry.name, entry.version)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference,
        "name": entry.name,
        "version": entry.version,
        "purl": reference,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in entry.hashes],
    }
    if licence := _licence(entry):
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def _is_root(entry: Locked) -> bool:
    return lockfile.PROJECT in entry.parents


def _licence(entry: Locked) -> str:
    """As the installed package names it; "" where it is not installed in that version, or does not say."""
    try:
        about = importlib.metadata.metadata(entry.name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    if about["Version"].partition("+")[0] != entry.version:
        return ""
    named = (*about.get_all("License-Expression", []), *about.get_all("License", []))
    classes = (
        one.rpartition(" :: ")[2] for one in about.get_all("Classifier", []) if one.startswith("License")
    )
    said = next((one for one in (*named[:1], *classes, *named) if one.strip()), "")
    return said.strip().splitlines()[0][:200] if said else ""


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


if __name__ == "__main__":
    sys.exit(main())
