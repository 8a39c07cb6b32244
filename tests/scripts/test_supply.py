"""The locks fit what the project asks for, a stale one is found out, and what is listed is what is locked."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.specifiers import SpecifierSet

from scripts import install, lockfile
from scripts.check import MACHINES, find_problems
from scripts.sbom import bill

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "scripts" / "install.py"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with this repository's requirements and locks."""
    for path in (ROOT / "pyproject.toml", *ROOT.glob("requirements*.lock")):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_the_locks_fit_what_the_project_asks_for() -> None:
    assert find_problems(ROOT) == []


def changed(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def without(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "requirements.lock"
        entries = lockfile.parse(path.read_text())
        path.write_text(lockfile.render([entry for entry in entries if entry.name != name], ""))

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            changed("pyproject.toml", '"msgpack>=1.1"', '"msgpack>=99"'),
            r"msgpack>=99 is not met by requirements",
        ),
        (
            changed("pyproject.toml", '"msgpack>=1.1",', '"msgpack>=1.1", "nowhere>=1",'),
            "nowhere>=1 is not met",
        ),
        (changed("pyproject.toml", '    "watchfiles>=1.1",\n', ""), "watchfiles==.* but nothing needs it"),
        (
            changed("pyproject.toml", '"pytest>=9"', '"pytest>=99"'),
            "pytest>=99 is not met by requirements-test",
        ),
        (
            changed("pyproject.toml", '"torch>=2.11,<2.14"', '"torch>=99"'),
            "torch>=99 is not met by requirements.lock",
        ),
        (without("msgpack"), "msgpack>=1.1 is not met"),
        (without("huggingface-hub"), "needs huggingface-hub.*, which is not locked"),
        (
            changed("requirements.lock", "# Slipstream", "--index-url=https://host/\n# What"),
            "no line of a lock",
        ),
        (
            changed("requirements.lock", "# Slipstream", "# https://host/\n# What"),
            "requirements.lock holds an address",
        ),
        (lambda folder: (folder / "requirements-build.lock").unlink(), "requirements-build.lock"),
        (
            changed("requirements-torch.lock", "sys_platform == 'win32'", "sys_platform == 'cygwin'"),
            "torch<2.14,>=2.11 is not met .* on win32",
        ),
    ],
)
def test_a_stale_lock_is_found_out(copy: Path, change: Callable[[Path], None], problem: str) -> None:
    assert find_problems(copy) == []
    change(copy)
    assert any(re.search(problem, found) for found in find_problems(copy))


def test_one_range_of_python_stands_wherever_somebody_chooses_an_interpreter() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    allowed = SpecifierSet(project["project"]["requires-python"])
    versions = [f"3.{minor}" for minor in range(30)]
    wanted = [version for version in versions if allowed.contains(version)]
    assert sorted({machine["python_version"] for machine in MACHINES}) == wanted
    numbers = [tuple(map(int, version.split("."))) for version in versions]
    assert [not install.python_complaint((major, minor)) for major, minor in numbers] == [
        version in wanted for version in versions
    ]
    (in_make,) = re.findall(r"sys\.exit\(not (.+)\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for version, number in zip(versions, numbers, strict=True):
        played = SimpleNamespace(version_info=(*number, 0))
        assert eval(in_make, {"sys": played}) == (version in wanted)  # noqa: S307 - a line of our own


def test_an_interpreter_for_which_nothing_is_locked_installs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 15, 0, "final", 0))
    monkeypatch.setattr(sys, "argv", ["install.py", "--locks", str(ROOT), str(tmp_path / "a.whl")])
    monkeypatch.setattr(install, "_PIP", (sys.executable, "-c", "raise SystemExit('pip was asked')"))
    assert install.main() == 1
    assert capsys.readouterr().err == "Slipstream needs Python 3.11 to 3.14, and this is 3.15.\n"


def commands(document: str) -> list[str]:
    """Each command line in the blocks and spans of a document, on one line."""
    text = document.replace("\\\n", " ")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [" ".join(line.split()) for line in [*"".join(blocks).splitlines(), *spans]]


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_one_line_installs_the_wheel_and_uv_knows_its_option(page: str) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    line = f"uv tool install --torch-backend auto slipstream_completion-{version}-py3-none-any.whl"
    (written,) = {one for one in commands((ROOT / page).read_text()) if one.startswith("uv tool install")}
    assert written.replace("dist/", "") == line
    uv = [sys.executable, "-P", "-m", "uv", "tool", "install", "--torch-backend", "auto", "--help"]
    subprocess.run(uv, check=True, capture_output=True)


def test_a_lock_is_read_as_it_was_written() -> None:
    for group, entries in lockfile.read_all(ROOT).items():
        assert entries
        assert all(entry.hashes for entry in entries)
        text = (ROOT / f"{group}.lock").read_text()
        assert lockfile.render(entries, text.splitlines()[0].removeprefix("# ")) == text


def test_no_package_is_in_two_locks_but_the_tests_own_triton() -> None:
    groups = lockfile.read_all(ROOT)
    names = [name for entries in groups.values() for name in {entry.name for entry in entries}]
    assert {name for name in names if names.count(name) > 1} <= {"triton"}


def test_what_only_gpus_need_is_in_the_lock_of_torch_alone() -> None:
    groups = lockfile.read_all(ROOT)
    runs = {entry.name for entry in groups[lockfile.RUNTIME]}
    assert not [name for name in runs if name.startswith(("nvidia-c", "cuda", "triton", "torch"))]
    assert any(entry.name.startswith("nvidia-c") for entry in groups[lockfile.TORCH])


@pytest.mark.parametrize(
    ("platform", "has_driver", "build", "indexes"),
    [
        ("linux", False, "+cpu", ["", install.TORCH_INDEX]),
        ("linux", True, "", []),
        ("darwin", False, "", []),
        ("darwin", True, "", []),
        ("win32", False, "", []),
        ("win32", True, "+cu130", ["", install.CUDA_INDEX]),
    ],
)
def test_torch_is_for_cuda_where_there_is_a_driver(
    platform: str, has_driver: bool, build: str, indexes: list[str]
) -> None:
    attempts = install.other_builds("2.0", platform, has_driver=has_driver)
    assert [dict(pairwise(attempt)).get("--index-url", "") for attempt in attempts] == indexes
    assert all(f"torch==2.0{build}" in attempt for attempt in attempts)
    said = install.torch_step("2.0", platform, has_driver=has_driver)
    assert ("several GB" in said) == (has_driver and platform != "darwin")


@pytest.mark.parametrize(
    ("installed", "platform", "has_driver", "replaced"),
    [
        ("2.0+cpu", "linux", True, True),
        ("2.0+cpu", "linux", False, False),
        ("2.0", "linux", True, False),
        ("2.0+cu130", "win32", True, False),
        ("2.0", "win32", True, True),
        ("2.0", "darwin", True, False),
    ],
)
def test_a_cpu_build_gives_way_where_a_driver_is_found(
    installed: str, platform: str, has_driver: bool, replaced: bool
) -> None:
    assert install.must_replace(installed, platform, has_driver=has_driver) == replaced


def test_a_driver_is_found_by_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "DRIVER_FILE", tmp_path / "version")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not install.has_nvidia_driver()
    program = tmp_path / ("nvidia-smi.exe" if sys.platform == "win32" else "nvidia-smi")
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert install.has_nvidia_driver()


def test_the_list_names_every_locked_package_once_and_is_the_same_each_time() -> None:
    listed, again = bill(ROOT), bill(ROOT)
    groups = lockfile.read_all(ROOT)
    locked = [e for group in (lockfile.RUNTIME, lockfile.TORCH) for e in groups[group]]
    assert {(one["name"], one["version"]) for one in listed["components"]} == {
        (e.name, e.version) for e in locked
    }
    references = [one["bom-ref"] for one in listed["components"]]
    assert len(set(references)) == len(references)
    known = {*references, listed["metadata"]["component"]["bom-ref"]}
    assert all({one["ref"], *one["dependsOn"]} <= known for one in listed["dependencies"])
    assert json.dumps(listed) == json.dumps(again)


def write_wheel(folder: Path, name: str, version: str) -> Path:
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", f"version = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


PROJECTS = {"part", "torch", "project"}


class Installation:
    """An environment without these projects, a folder of wheels as the only index, and locks of them."""

    def __init__(self, folder: Path, env: Path) -> None:
        self.wheels, self.locks = folder / "wheels", folder / "locks"
        for path in (self.wheels, self.locks):
            path.mkdir()
        self.python = str(env / "bin" / "python")
        (self.packages,) = env.glob("lib/python*/site-packages")
        for path in self.packages.iterdir():
            if path.name.partition("-")[0].removesuffix(".py") in PROJECTS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        assert self.installed() == {}
        self.lock("requirements", write_wheel(self.wheels, "part", "1.0"))
        self.lock("requirements-torch", write_wheel(self.wheels, "torch", "2.0"))
        self.project = write_wheel(folder, "project", "1.0")

    def lock(self, group: str, wheel: Path) -> None:
        name, version = wheel.name.split("-")[:2]
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        entry = lockfile.Locked(name, version, "", (digest,), (lockfile.PROJECT,))
        (self.locks / f"{group}.lock").write_text(lockfile.render([entry], "Made by the test."))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.python, "-I", str(INSTALL), "--locks", str(self.locks), *arguments, str(self.project)]
        index = ["--pip-argument=--no-index", f"--pip-argument=--find-links={self.wheels}"]
        return subprocess.run(
            [*command[:-1], *index, command[-1]], capture_output=True, text=True, check=False
        )

    def installed(self) -> dict[str, str]:
        found = metadata.distributions(path=[str(self.packages)])
        return {one.name: one.version for one in found if one.name in PROJECTS}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with pip."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    return folder


@pytest.fixture
def installation(tmp_path: Path, environment: Path) -> Installation:
    return Installation(tmp_path, environment)


pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the environment's interpreter lies elsewhere"
)


def test_everything_is_installed_by_its_hash(installation: Installation) -> None:
    done = installation.run()
    assert done.returncode == 0, done.stderr
    assert installation.installed() == {"part": "1.0", "torch": "2.0", "project": "1.0"}


def test_who_waits_is_told_of_each_step(installation: Installation) -> None:
    told = installation.run("--pip-argument=--quiet").stdout.splitlines()
    assert [line for line in told if "was not found" not in line] == [
        "Packages of requirements.lock: up to 1",
        install.torch_step("2.0", sys.platform, has_driver=install.has_nvidia_driver()),
    ]


def test_a_file_that_is_not_the_locked_one_is_refused(installation: Installation) -> None:
    (installation.wheels / "part-1.0-py3-none-any.whl").unlink()
    other = write_wheel(installation.wheels, "part", "1.0")
    other.write_bytes(other.read_bytes() + b"more")
    done = installation.run()
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert installation.installed() == {}


@pytest.mark.skipif(
    not install.other_builds("2.0", sys.platform, has_driver=install.has_nvidia_driver()),
    reason="this machine takes torch's public build",
)
def test_torch_for_cpus_is_taken_where_an_index_has_it(installation: Installation) -> None:
    write_wheel(installation.wheels, "torch", "2.0+cpu")
    done = installation.run()
    assert done.returncode == 0, done.stderr
    assert installation.installed()["torch"] == "2.0+cpu"
    assert "not to be had" not in done.stdout
