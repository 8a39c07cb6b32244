"""Commits typed again through a real server: own commits, nothing written, no leftovers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks.command_line import run
from tests.benchmarks.history.__main__ import history
from tests.benchmarks.history.git_repositories import Repository
from tests.calls import Call, caller

SHAPES = "def area(width, height):\n    return width * height\n"
MORE = "\n\ndef perimeter(width, height):\n    return 2 * (width + height)\n"
MODULE = "package shapes\n\nfunc Area(width, height int) int {\n\treturn width * height\n}\n"


@pytest.fixture
def run_history(
    tiny_model_dir: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Call:
    """Call the benchmark with arguments; config.toml names the tiny target."""
    home = tmp_path_factory.mktemp("home")
    return caller(lambda: run(history), home, tiny_model_dir, monkeypatch, capfd)


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, alone; nothing of ours may be left there."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert not list(folder.glob("slipstream-*"))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Three commits of Ada's with typed lines, one of Bob's, one merge, one with a lock file alone."""
    made = Repository(tmp_path / "work")
    made.commit({"shapes.py": SHAPES, "README.md": "# Shapes\n"}, "First")
    made.commit({"shapes.py": SHAPES + MORE}, "Perimeter")
    made.commit({"bob.py": "print('Bob')\n"}, "Bob's", author="bob@example.org")
    made.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    made.commit({"shapes.go": MODULE}, "Go")
    made.git("checkout", "--quiet", "main")
    made.git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    made.commit({"uv.lock": "version = 1\n"}, "Lock")
    made.commit({"README.md": "# Shapes\n\nAreas and perimeters.\n"}, "Words")
    return made


def test_own_commits_are_typed_newest_first(
    run_history: Call, repository: Repository, temporary: Path
) -> None:
    before = repository.state()
    report = run_history(repository.root, "--minutes", 4, "--json").json()
    assert [one["subject"] for one in report["by_commit"]] == ["Words", "Go", "Perimeter"]
    assert {"merge commits": 1, "first commits": 1, "generated": 1}.items() <= report["left_out"].items()
    assert report["left_out"]["commits without typed lines"] == 1
    assert set(report["by_language"]) == {"markdown", "go", "python"}
    assert set(report["by_file"]) == {"README.md", "shapes.go", "shapes.py"}
    typed = len(MODULE) + len(MORE) + len("\nAreas and perimeters.\n")
    assert report["num_chars"] == typed
    assert report["num_chars"] == sum(one["num_chars"] for one in report["by_commit"])
    assert report["num_failed"] == 0
    assert report["warm_ms"]["count"] + report["first_ms"]["count"] > 100
    assert report["first_ms"]["count"] == 3
    assert repository.state() == before


def test_author_number_and_screen(run_history: Call, repository: Repository, temporary: Path) -> None:
    done = run_history(repository.root, "--author", "bob@example.org", "--minutes", 4)
    assert done.code == 0
    assert "1 of 1 commits of bob@example.org" in done.out
    assert "Bob's" in done.out  # an answer after the commit
    assert "By language" in done.out


def test_the_time_bounds_the_replay(run_history: Call, repository: Repository, temporary: Path) -> None:
    repository.commit({"long.py": "".join(f"value_{n} = compute({n})\n" for n in range(4000))}, "Long")
    report = run_history(repository.root, "--minutes", 0.5, "--json").json()
    assert 0 < report["num_chars"] < 80_000
    assert sum(one["num_chars"] > 0 for one in report["by_commit"]) >= 3  # each gets a share


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--author", "nobody@example.org"), "no commit of nobody@example.org"),
        (("--since", "2099-01-01"), "since 2099-01-01"),
    ],
)
def test_nothing_to_type_is_said(
    run_history: Call, repository: Repository, arguments: tuple[str, ...], said: str
) -> None:
    done = run_history(repository.root, *arguments)
    assert (done.code, done.out) == (1, "")
    assert said in done.err


def test_a_folder_without_git_is_refused(run_history: Call, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    done = run_history(tmp_path / "plain")
    assert (done.code, done.out) == (1, "")
    assert "git" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_stopped_at_any_time(
    run_history: Call, repository: Repository, temporary: Path, number: int
) -> None:
    """Stopped, it reports the commits that it has and leaves no files."""
    repository.commit({"long.py": "".join(f"value_{n} = compute({n})\n" for n in range(4000))}, "Long")
    repository.commit({"short.py": "value = 1\n"}, "Short")
    # A suite that was started in the background may ignore the signal, and so would its children.
    listens = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{listens}; import runpy; runpy.run_module('tests.benchmarks.history', run_name='__main__')"
    command = [sys.executable, "-c", program, str(repository.root), "--minutes", "10"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ.copy()) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert "Short" in first
        assert list(temporary.glob("slipstream-*"))
        os.kill(process.pid, number)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "1 of " in out and "Not typed" in out


def test_without_an_email_the_most_frequent_authors_are_offered(
    run_history: Call, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"bob.py": "print('Bob!')\n"}, "Bob's", author="bob@example.org")
    for author in ("eve@example.org", "$(x) y@example.org"):
        repository.commit({f"{author}.py": "print(1)\n"}, "Once", author=author)
    repository.git("config", "--unset", "user.email")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    done = run_history(repository.root)
    assert (done.code, done.out) == (1, "")
    assert "git has no user.email here." in done.err
    offered = [line.strip() for line in done.err.splitlines() if "--author" in line]
    assert offered[:2] == ["--author ada@example.org", "--author bob@example.org"]
    assert len(offered) == 3
