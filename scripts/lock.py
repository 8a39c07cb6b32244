"""Makes the locks anew: python -m scripts.lock [--upgrade] (make lock)

Versions stay as they are unless they have to change; --upgrade takes the newest. uv chooses them, once for
all platforms and versions of Python; this module divides them into locks. Needs a network.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts import lockfile
from scripts.lockfile import BUILD, GROUPS, PROJECT, RUNTIME, TEST, TORCH, Declared, Locked

_HEADINGS = {
    RUNTIME: "Slipstream's own dependencies, except torch.",
    TORCH: "torch's public build; on Linux that is the one for GPUs, with all that it brings.",
    BUILD: "Dependencies of the build.",
    TEST: "Further dependencies of the tests and measurements.",
}
_OPTIONS = (
    "--universal", "--generate-hashes", "--only-binary=:all:", "--no-header", "--annotation-style=line",
    "--python-version=3.11", "--no-emit-index-url", "--no-emit-find-links", "--quiet",
)  # fmt: skip


def main() -> int:
    """Write the locks beside pyproject.toml in the current folder."""
    root = Path.cwd()
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    declared = Declared.of(project)
    old = [entry for group in GROUPS for entry in _old(root / f"{group}.lock")]
    options = ["--upgrade"] if "--upgrade" in sys.argv[1:] else []
    rules = project["tool"]["uv"]
    # torch's builds pin the triton they come with; the tests' own, for CPUs, is chosen by itself.
    asked = [one for group in (RUNTIME, BUILD, TEST) for one in declared.by_group[group]]
    apart = [one for one in asked if lockfile.name_of(one) == "triton"]
    together = [one for one in asked if one not in apart]
    divided = lockfile.divide(_choose(together, rules, old, options), declared)
    divided[TEST] += _choose(apart, rules, [one for one in old if one.parents == (PROJECT,)], options)
    for group in GROUPS:
        text = lockfile.render(divided[group], _HEADINGS[group])
        (root / f"{group}.lock").write_text(text, encoding="utf-8")
    return 0


def _old(lock: Path) -> list[Locked]:
    return lockfile.parse(lock.read_text(encoding="utf-8")) if lock.is_file() else []


def _choose(
    requirements: Sequence[str],
    rules: Mapping[str, Sequence[str]],
    old: Sequence[Locked],
    options: Sequence[str],
) -> list[Locked]:
    """Versions of `requirements` and all they need, under uv's own rules, near those of the `old` lock."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        quoted = {key: ", ".join(f'"{one}"' for one in value) for key, value in rules.items()}
        listed = ", ".join(f'"{one}"' for one in requirements)
        table = f'[project]\nname = "{PROJECT}"\nversion = "0"\nrequires-python = ">=3.11"\n'
        uv = "".join(f"{key} = [{value}]\n" for key, value in quoted.items())
        (folder / "pyproject.toml").write_text(f"{table}dependencies = [{listed}]\n[tool.uv]\n{uv}")
        (folder / "lock.txt").write_text(lockfile.render(old, ""))
        command = [sys.executable, "-P", "-m", "uv", "pip", "compile", *_OPTIONS, *options]
        subprocess.run([*command, "--output-file=lock.txt", "pyproject.toml"], cwd=folder, check=True)
        text = (folder / "lock.txt").read_text().replace(f"{PROJECT} (pyproject.toml)", PROJECT)
    return lockfile.parse(text)


if __name__ == "__main__":
    sys.exit(main())
