"""The parts of a measurement of quality: kept results, pairs, holes, confined programs, archives."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from completion_engine.errors import DataError, UserError
from lsp_server.commands.local_engine import Sample
from tests.benchmarks import released_sources, unbuilt
from tests.benchmarks.accepting.holes import Place, accepting_rows, num_unopened
from tests.benchmarks.infilling.pass_rate import OURS, PLAIN, infilling_rows
from tests.benchmarks.infilling.sandbox import runs_to_its_end
from tests.benchmarks.json_lines import JsonLines
from tests.benchmarks.judging import Judgement
from tests.benchmarks.quality.results import Asked, QualityResults, sign_test
from tests.benchmarks.releases import ENDINGS, RELEASES, Release

RIGHT = Judgement(True, True, 1.0, True, 9, 2.0)
WRONG = replace(RIGHT, is_exact=False, similarity=0.5, num_bits=5.0)


def test_a_line_that_was_cut_off_is_forgotten_and_the_next_one_starts_afresh(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    JsonLines(path).add({"n": 1})
    with path.open("a", encoding="utf-8") as lines:
        lines.write('{"n": 2')
    JsonLines(path).add({"n": 3})
    assert JsonLines(path).objects == [{"n": 1}, {"n": 3}]


@pytest.mark.parametrize("text", ["no json\n", '{"n": 1}\n'])
def test_a_file_of_something_else_is_a_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"results\.jsonl"):
        QualityResults(path)


def test_pairs_count_positions_that_both_ways_were_asked_at() -> None:
    results = QualityResults()
    for position, whole, without in (("a", RIGHT, WRONG), ("b", RIGHT, RIGHT), ("c", WRONG, RIGHT)):
        results.add(Asked("m", "go", position, "whole"), whole, "")
        results.add(Asked("m", "go", position, "without"), without, "")
    results.add(Asked("m", "go", "d", "whole"), RIGHT, "")
    rows = {(row["language"], row["way"]): row for row in results.rows("whole")}
    assert rows["go", "whole"]["exact"] == 0.75
    assert "num_won" not in rows["go", "whole"]
    assert rows["all", "without"]["num_positions"] == 3
    assert (rows["go", "without"]["num_won"], rows["go", "without"]["num_lost"]) == (1, 1)
    assert rows["go", "without"]["bits_lost"] == 0.0  # three more bits, none, three fewer
    assert rows["go", "without"]["bits_error"] == pytest.approx(3**0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("num_won", "num_lost", "chance"),
    [(0, 0, 1.0), (1, 1, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (8, 1, 0.0391)],
)
def test_a_sign_test_is_two_sided(num_won: int, num_lost: int, chance: float) -> None:
    assert sign_test(num_won, num_lost) == chance


@pytest.mark.parametrize(
    ("program", "is_run"),
    [
        ("assert sum(range(4)) == 6", True),
        ("import math, heapq, typing\nassert math.pi", True),
        ("assert False", False),
        ("def f(:", False),
        ("raise SystemExit(0)", False),
        ("import socket\nsocket.socket()", False),
        ("import subprocess\nsubprocess.run(['true'])", False),
        ("import os\nos.fork()", False),
        ("open('left-behind', 'w')", False),
        ("x = bytearray(3 << 30)", False),
    ],
)
def test_a_program_runs_to_its_end_within_its_limits(program: str, is_run: bool) -> None:
    assert runs_to_its_end(program) == is_run


FUNCTION = "def f(a):\n    b = g(a)\n    c = [b]\n    return c\n\n\nf(1)\n"
LINE = Sample("x", "x.py", "python", "def f(a):\n    b", "\n    c = [b]\n    return c\n\n\nf(1)\n", " = g(a)")


def test_a_hole_reaches_to_the_end_of_its_block() -> None:
    assert LINE.prefix + LINE.expected + LINE.suffix == FUNCTION
    place = Place.hole_at(LINE)
    assert (place.left, place.right) == ("def f(a):\n    ", "\nf(1)\n")


@pytest.mark.parametrize(
    ("left", "right", "text", "num_replaced", "lines", "brackets"),
    [
        ("total = 0\n", "\n", "count = 1", 0, [], []),
        ("total = 0\n", "\n", "total = 0", 0, ["total = 0"], []),
        ("total = 0\n", "\n", "count = 1\ncount = 1", 0, ["count = 1"], []),
        ("total = ", "\ncount = 1\n", "0\ncount = 1", 0, ["count = 1"], []),
        ("if a:\n    pass\n", "\n", "pass", 0, [], []),
        ("print(a", ")\n", ")", 1, [], []),
        ("print(a", ")\n", ")", 0, [], [")"]),
        ("print(a", "\n", ", ')')", 0, [], []),
    ],
)
def test_what_stands_twice_is_seen(
    left: str, right: str, text: str, num_replaced: int, lines: list[str], brackets: list[str]
) -> None:
    place = Place(left, right)
    place.accept(text, num_replaced, "python")
    assert (place.repeated_lines, place.repeated_brackets) == (lines, brackets)
    assert place.left == left + text


@pytest.mark.parametrize(
    ("texts", "language", "brackets"),
    [
        (["`a: ${b})`);"], "javascript", []),
        (['"b) }, c]', '", 1)'], "python", []),
        (['"b) }, c]'], "python", ['"b) }, c]']),
        (["b));", "\nc();"], "javascript", ["b));"]),
        (["b));", "\nc();", "\nd());"], "javascript", ["b));", "\nd());"]),
    ],
)
def test_a_bracket_is_judged_when_the_string_around_it_is_done(
    texts: list[str], language: str, brackets: list[str]
) -> None:
    place = Place("f(", "\n")
    for text in texts:
        place.accept(text, 0, language)
    assert place.repeated_brackets == brackets


def test_each_kind_of_bracket_is_counted_by_itself() -> None:
    assert num_unopened("f(a[1]]))  # )", "python") == 2
    assert num_unopened("f(", "python") == 0
    assert num_unopened("[[nodiscard]] int f() { return 1; }\nint a = 1];", "cpp") == 1


@pytest.mark.parametrize(
    ("left", "expected"),
    [("if a:", "if a:\n    "), ("    b()", "    b()\n    "), ("\tif (a) {", "\tif (a) {\n\t\t")],
)
def test_enter_goes_as_far_in_as_an_editor_would(left: str, expected: str) -> None:
    place = Place("x\n\ty\n" + left if "\t" in left else left, "")
    place.press_enter()
    assert place.left.endswith(expected)


def test_accepted_and_passed_are_summed_up_by_model() -> None:
    lines = JsonLines()
    for place in ("a", "b"):
        lines.add(
            {
                "model": "m",
                "place": place,
                "num_accepted": 2,
                "repeated_lines": [place],
                "repeated_brackets": [],
            }
        )
    (row,) = accepting_rows(lines)
    assert (row["num_places"], row["num_accepted"], row["repeated_lines"]) == (2, 4, ["a", "b"])
    tasks = JsonLines()
    for ours, plain in ((True, False), (True, True), (False, False)):
        tasks.add({"model": "m", "task": "t", "passed": {OURS: ours, PLAIN: plain}})
    (row,) = infilling_rows(tasks)
    assert (row[OURS], row[PLAIN], row["num_won"], row["num_lost"]) == (0.667, 0.333, 1, 0)


def archive(path: Path, files: dict[str, str]) -> str:
    with tarfile.open(path, "w:gz") as packed:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_only_the_named_folder_of_an_archive_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a-1.tar.gz"
    archive(path, {"a-1/src/x.rs": "x", "a-1/srcs/y.rs": "y", "a-1/setup.py": "z"})
    release = Release("source", "a==1", "", "src")
    released_sources._unpack(path, release, tmp_path, tmp_path / "out" / release.project)
    assert [found.relative_to(tmp_path / "out") for found in (tmp_path / "out").rglob("*.*")] == [
        Path("a/src/x.rs")
    ]


def test_an_archive_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr(released_sources, "_from_pip", lambda _, to: archive(to / "a.tar.gz", {"a/b": "c"}))
    with pytest.raises(DataError, match="another hash"):
        released_sources._fetched(Release("source", "a==1", "0" * 64), place)


def test_metadata_of_an_archive_are_found_without_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: my-thing\nVersion: 1.2\n", encoding="utf-8"
    )
    (tmp_path / "setup.py").write_text("raise SystemExit('it ran')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    name = unbuilt.prepare_metadata_for_build_wheel(str(tmp_path))
    assert name == "my_thing-1.2.dist-info"
    assert (tmp_path / name / "METADATA").read_text(encoding="utf-8").startswith("Metadata-Version")


def test_an_unknown_language_is_a_clear_error() -> None:
    with pytest.raises(UserError, match="cobol"):
        released_sources.released_sources("cobol")


def test_every_set_of_releases_says_which_files_count_and_which_archives_they_are() -> None:
    assert RELEASES.keys() == ENDINGS.keys()
    for releases in RELEASES.values():
        names = [release.project for release in releases]
        assert len(names) == len(set(names))
        assert all(len(release.sha256) == 64 for release in releases if release.project != "watchfiles")
