"""Ignore rules mean the same as in git, and cost what their size allows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ngram_cache.ignore import (
    MAX_LINE_BYTES,
    MAX_RULE_BYTES,
    MAX_RULES,
    IgnoreLayer,
    RulesTooLargeError,
    is_ignored,
)
from tests.growth import NUM_ROUNDS

_GIT = shutil.which("git")
_LETTERS = [b"a", b"b", b"ab", b"-", b"c.py", b" ", "é".encode(), b"\xe9", b"[", b"!"]
_SPECIALS = [
    b"*", b"**", b"***", b"?", b"/", b"/", b"/**/", b"[ab]", b"[!a]", b"[^b]", b"[a-c]", b"[]a]", b"[a",
    b"[[:alpha:]]", b"[[:wrong:]]", b"[[:]", b"\\", b"\\*", b"\\/", b"\\ ", b" ", b"[\\]]", b"[z-a]",
    b"[-a]", b"[a-]", "[é]".encode(),
]  # fmt: skip
_lines = st.builds(
    lambda sign, pieces, end: sign + b"".join(pieces) + end,
    st.sampled_from([b"", b"", b"", b"!", b"/", b"#", b"\\!"]),
    st.lists(st.sampled_from([*_LETTERS, *_LETTERS, *_SPECIALS]), min_size=1, max_size=6),
    st.sampled_from([b"", b"", b"", b"/", b" ", b"\r", b"\\ ", b"\0a"]),
)
_names = st.lists(
    st.sampled_from(["a", "b", "c", "ab", "-", "c.py", "é", "[", "!a", " ", "*", "a]"]),
    min_size=1,
    max_size=2,
)
# Stars inside a name: git 2.52 reads them otherwise than those before it.
_DISPUTED = re.compile(rb"[^/*!]\*\*")
_paths = st.lists(_names.map("".join), min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def judged_by_git(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Git]:
    if _GIT is None:
        pytest.skip("compares with git itself")
    yield Git(tmp_path_factory.mktemp("git"))


class Git:
    """An empty work tree whose rules are written anew for every question."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._run(["init", "-q"], b"")

    def ignores(self, rules: bytes, paths: list[str]) -> set[str]:
        (self._root / ".gitignore").write_bytes(rules)
        asked = "".join(f"{path}\0" for path in paths).encode()
        told = self._run(["check-ignore", "--no-index", "--stdin", "-z"], asked)
        return set(filter(None, told.decode().split("\0")))

    def _run(self, arguments: list[str], given: bytes) -> bytes:
        ran = subprocess.run(
            [str(_GIT), "-C", str(self._root), *arguments], input=given, capture_output=True, check=False
        )
        assert ran.returncode in {0, 1}, ran.stderr
        return ran.stdout


def ignores(rules: bytes, path: str) -> bool:
    """As a walk asks: folder by folder, and what lies in an ignored one is not asked about."""
    layer = IgnoreLayer.parse(rules)
    names = path.removesuffix("/").split("/")
    for depth in range(1, len(names) + 1):
        is_folder = depth < len(names) or path.endswith("/")
        if is_ignored([layer], "/".join(names[:depth]), is_folder=is_folder):
            return True
    return False


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_lines, max_size=4), st.lists(_paths, min_size=1, max_size=12, unique=True))
@example([b"x/a**/b", b"c/a**"], ["x/ab", "x/a/b", "x/ac/b", "c/a", "c/ab/c"])
@example([b"**/", b"!a/"], ["a", "b", "a/b"])
@example(["é?".encode(), b"\xc3[\xa0-\xaf]"], ["éa", "é", "é/a"])
@example(["à".encode()], ["à", "Ã"])
@example([b"a[", b"[[:alpha:]b"], ["a[", "[", "ab"])
def test_git_agrees_on_every_pattern(judged_by_git: Git, lines: list[bytes], paths: list[str]) -> None:
    rules = b"\n".join(lines) + b"\n"
    paths = [path for path in paths if ".." not in path]
    ours, gits = {path for path in paths if ignores(rules, path)}, judged_by_git.ignores(rules, paths)
    if any(map(_DISPUTED.search, lines)):
        assert ours >= gits
    else:
        assert ours == gits


@pytest.mark.parametrize(
    ("rules", "path", "is_left_out"),
    [
        (b"x/a**/b", "x/ab", True),
        (b"x/ab\n!x/a**/b", "x/ab", True),
        (b"x/a**", "x/a/b", True),
        (b"x/a/b\n!x/a**", "x/a/b", True),
        (b"x/ab\n!x/a**", "x/ab", False),
        (b"x/a/b\n!x/**/b", "x/a/b", False),
    ],
)
def test_where_versions_of_git_differ_more_is_left_out(rules: bytes, path: str, is_left_out: bool) -> None:
    assert ignores(rules, path) == is_left_out


HOSTILE = {
    "stars": b"*a" * 60 + b"*b",
    "many stars": b"\n".join(b"*a" * number + b"*b" for number in range(1, 100)),
    "a state a byte": b"*a" + b"?" * 1000 + b"b",
    "many states": b"\n".join(b"*a" + b"?" * 200 + b"%d" % number for number in range(300)),
    "folders": b"**/a/" * 100 + b"b",
    "brackets": b"[" * 4_000,
    "sets": b"[!a-z]*" * 500,
    "a long line": b"a" * MAX_LINE_BYTES,
    "as many as fit": b"*a?b*c\n" * MAX_RULES,
    "escapes": b"\\" * 3_999,
}


ORDINARY = b"\n".join(b"/folder%d/*.o" % number for number in range(4_000))


def step_costs_s(rules: bytes, name: str) -> list[float]:
    """Return the processor seconds between the moments at which reading and judging may be stopped."""
    times_s: list[float] = [time.thread_time()]

    def checkpoint() -> None:
        times_s.append(time.thread_time())

    layer = IgnoreLayer.parse(rules, checkpoint=checkpoint)
    checkpoint()
    layer.verdict(name, is_folder=False, checkpoint=checkpoint)
    checkpoint()
    return [after - before for before, after in pairwise(times_s)]


@pytest.fixture(scope="module")
def ordinary_s() -> float:
    """The processor seconds that ordinary rules take on this machine."""
    return min(sum(step_costs_s(ORDINARY, "folder7/a.o")) for _ in range(NUM_ROUNDS))


@pytest.mark.parametrize("rules", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["a" * 120, "ab" * 127, "a/" * 500 + "a", "ü" * 100], ids=len)
def test_no_pattern_takes_much_longer_for_any_name_than_ordinary_rules(
    rules: bytes, name: str, ordinary_s: float
) -> None:
    for _ in range(NUM_ROUNDS):
        costs_s = step_costs_s(rules, name)
        if max(costs_s) < 5 * ordinary_s and sum(costs_s) < 20 * ordinary_s:
            return  # a walk is asked to stop between steps
    pytest.fail(f"{costs_s} where ordinary rules take {ordinary_s}")


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (b"#" * (MAX_RULE_BYTES + 1), "256 kB"),
        (b"a" * (MAX_LINE_BYTES + 1), "4 kB"),
        (b"a\n" * (MAX_RULES + 1), "10,000 rules"),
    ],
    ids=["bytes", "line", "rules"],
)
def test_rules_beyond_the_limits_are_refused(rules: bytes, said: str) -> None:
    with pytest.raises(RulesTooLargeError, match=said):
        IgnoreLayer.parse(rules)


def test_a_check_between_steps_ends_a_question() -> None:
    class StopError(Exception):
        pass

    def stop() -> None:
        raise StopError

    with pytest.raises(StopError):
        IgnoreLayer.parse(b"a\n").verdict("b", is_folder=False, checkpoint=stop)


def test_a_name_that_is_no_text_is_judged_by_its_bytes() -> None:
    assert IgnoreLayer.parse(b"\xe9*\n").verdict(os.fsdecode(b"\xe9a"), is_folder=False) is True


@pytest.mark.parametrize("ignores_case", [False, True])
def test_where_names_in_other_letters_are_the_same_rules_say_so_too(ignores_case: bool) -> None:
    layer = IgnoreLayer.parse(b"/Private.txt\n[x-z]*.Log\n", ignores_case=ignores_case)
    for path in ("private.TXT", "deep/Yes.lOG"):
        assert bool(layer.verdict(path, is_folder=False)) == ignores_case
    assert layer.verdict("Private.txt", is_folder=False)
    assert layer.verdict("else.txt", is_folder=False) is None
