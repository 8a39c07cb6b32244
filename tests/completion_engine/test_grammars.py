"""Trees of any text: those of code whole, those of nothing at all given up before they take much."""

from __future__ import annotations

import gc
import resource
import tracemalloc
from pathlib import Path

import pytest

import completion_engine
from completion_engine import grammars
from completion_engine.grammars import Begun, new_parser, parse_within
from tests.growth import ratio

SOURCES = sorted(Path(completion_engine.__file__).parent.rglob("*.py"))[::4]
LONG = 60.0  # processor seconds, so that a slow machine gives up nothing


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step of parsing is given up, however slow the machine is at that moment."""
    monkeypatch.setattr(grammars, "_MAX_STEP_S", LONG)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_tree_that_is_made_in_steps_is_the_same(path: Path) -> None:
    parser, source = new_parser("python"), path.read_bytes()
    assert parser
    found = parse_within(parser, source, LONG)
    assert found
    assert str(found.root_node) == str(parser.parse(source).root_node)


def test_a_class_with_long_docstrings_is_not_read_again_in_each_step() -> None:
    said = "        The name is a key, and it isn't empty: `load('a')`.\n" * 20
    method = f'    def load(self, name):\n        """Load it.\n\n{said}        """\n        return name\n\n'
    parser, source = new_parser("python"), f"class A:\n{method * 80}".encode()
    assert parser
    assert ratio(lambda: parse_within(parser, source, LONG), lambda: parser.parse(source), below=20) < 20


@pytest.mark.usefixtures("unhurried")
def test_what_is_known_of_the_beginning_changes_nothing() -> None:
    parser, source = new_parser("python"), SOURCES[0].read_bytes()
    assert parser
    for num_bytes in (0, 1, len(source) // 2, len(source)):
        begun = Begun(parser.parse(source[:num_bytes]), num_bytes)
        found = parse_within(parser, source, LONG, begun)
        assert found
        assert str(found.root_node) == str(parser.parse(source).root_node)


@pytest.mark.parametrize(
    ("language", "unit"),
    [
        ("c", "&1=>"),
        ("java", "a(&<"),
        ("java", "a<"),
        ("csharp", "a <"),
        ("typescript", ";!"),
        ("cpp", "*;"),
        ("python", "f(x$f(x"),
        ("shellscript", "<a>?{["),
    ],
)
@pytest.mark.parametrize("before", ["", "x = 1\n" * 400])
def test_what_is_no_code_takes_little_more_time_and_memory_than_code(
    language: str, unit: str, before: str
) -> None:
    code = ("x = foo(bar, 1)\n" * 6_144).encode()
    no_code = (before + unit * 24_000).encode()[: len(code)]
    parsers = new_parser("python"), new_parser(language)
    assert all(parsers)
    num_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = ratio(
        lambda: parse_within(parsers[1], no_code, 0.1),
        lambda: parse_within(parsers[0], code, LONG),
        below=5,
    )
    assert took < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - num_kb < 400 << 10


def test_a_text_that_was_parsed_is_forgotten() -> None:
    parser, source = new_parser("python"), b"".join(path.read_bytes() for path in SOURCES)[:10_000]
    assert parser
    tracemalloc.start()
    try:
        parse_within(parser, source, LONG)
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(20):
            parse_within(parser, source, LONG)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < len(source)
