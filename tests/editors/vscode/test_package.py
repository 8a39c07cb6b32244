"""The content of the package that people install."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest


@pytest.mark.parametrize("package", ["vscode-languageclient 11", "vscode-jsonrpc", "semver"])
def test_the_licences_of_bundled_packages_are_in_it(vsix: Path, package: str) -> None:
    with zipfile.ZipFile(vsix) as archive:
        text = archive.read("extension/out/third-party-notices.txt").decode()
    heads = [line for line in text.splitlines() if line.startswith(package)]
    assert len(heads) == 1
    notice = text.split(heads[0])[1].split("-" * 80)[0]
    assert "Copyright" in notice
    assert "WARRANT" in notice.upper()


def test_the_package_brings_the_server_and_no_sources(vsix: Path) -> None:
    with zipfile.ZipFile(vsix) as archive:
        names = archive.namelist()
    assert any(name.startswith("extension/server/") and name.endswith(".whl") for name in names)
    brought = {"install.py", "requirements.lock", "requirements-torch.lock", "sbom.cdx.json"}
    assert {f"extension/server/{name}" for name in brought} <= set(names)
    assert not [name for name in names if name.endswith((".ts", ".map")) or "node_modules" in name]
