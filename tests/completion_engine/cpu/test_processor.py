"""The detected features of a processor: each system's answer, played here, and what is named by hand."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

from completion_engine.cpu.kernels import dot, language
from completion_engine.cpu.kernels.dot import Sdot, Smmla
from completion_engine.cpu.kernels.language import DOT, MATRIX, is_arm, on_linux, on_macos, on_windows

AT_HWCAP, AT_HWCAP2 = 16, 26
PRINTED = "from completion_engine.cpu.kernels import dot; print([type(dot.INSTRUCTION_SETS[x]).__name__ for x in dot.instruction_sets()])"  # noqa: E501 - a program


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ({AT_HWCAP: 1 << 20, AT_HWCAP2: 1 << 13}, {DOT, MATRIX}),
        ({AT_HWCAP: 1 << 20, AT_HWCAP2: 0}, {DOT}),
        ({AT_HWCAP: ~(1 << 20), AT_HWCAP2: ~(1 << 13)}, set()),
    ],
)
def test_linux_says_it_in_two_words(words: dict[int, int], wanted: set[str]) -> None:
    assert on_linux(words.__getitem__) == wanted


def test_macos_says_it_by_names() -> None:
    found = {b"hw.optional.arm.FEAT_DotProd": 1, b"hw.optional.arm.FEAT_I8MM": 0}
    assert on_macos(found.__getitem__) == {DOT}
    assert on_macos(lambda _: 1) == {DOT, MATRIX}


def test_windows_says_it_by_numbers() -> None:
    assert on_windows({43: 1, 66: 0}.__getitem__) == {DOT}
    assert on_windows({43: 1, 66: 1}.__getitem__) == {DOT, MATRIX}


@pytest.mark.parametrize("failure", [AttributeError, OSError, TypeError])
def test_a_system_that_cannot_be_asked_has_nothing(
    monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    def fail(_: object) -> None:
        raise failure

    monkeypatch.setattr(ctypes, "CDLL", fail)
    monkeypatch.setattr(ctypes, "WinDLL", fail, raising=False)
    for system in ("linux", "darwin", "win32", "freebsd14"):
        assert language.reported(system) == frozenset()


@pytest.mark.parametrize(
    ("machine", "wanted"), [("arm64", True), ("aarch64", True), ("ARM64", True), ("x86_64", False)]
)
def test_machines_are_known_by_their_names(machine: str, *, wanted: bool) -> None:
    assert is_arm(machine) == wanted


@pytest.mark.parametrize(
    ("machine", "named", "wanted"),
    [
        ("arm64", None, "+neon,+dotprod,+i8mm"),
        ("arm64", "+neon", "+neon"),
        ("AMD64", None, None),
    ],
)
def test_the_compiler_is_told_unless_a_person_did(
    monkeypatch: pytest.MonkeyPatch, machine: str, named: str | None, wanted: str | None
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(language, "get_host_cpu_features", lambda: "+neon")
    monkeypatch.setattr(language, "reported", lambda _: frozenset({MATRIX, DOT}))
    for name, value in (("CPU_FEATURES", named), ("CPU_NAME", None)):
        monkeypatch.setattr(language.config, name, value)
    language.set_compiler_features()
    found = language.config.CPU_FEATURES
    assert found == wanted


@pytest.mark.parametrize(
    ("features", "wanted"),
    [({DOT}, [Sdot]), ({DOT, MATRIX}, [Smmla, Sdot]), ({MATRIX}, []), ({"neon"}, [])],
)
def test_the_quickest_that_the_features_allow_is_chosen(
    monkeypatch: pytest.MonkeyPatch, features: set[str], wanted: list[type]
) -> None:
    monkeypatch.setattr(language, "features", lambda: frozenset(features))
    dot.instruction_sets.cache_clear()
    try:
        assert [type(dot.INSTRUCTION_SETS[number]) for number in dot.instruction_sets()] == wanted
    finally:
        dot.instruction_sets.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("NUMBA_CPU_FEATURES", "+neon,+dotprod,-i8mm", ["Sdot"]),
        ("NUMBA_CPU_FEATURES", "", []),
        ("NUMBA_CPU_NAME", "generic", []),
    ],
)
def test_features_are_named_by_hand(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, wanted: list[str]
) -> None:
    for other in ("NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    found = subprocess.run([sys.executable, "-c", PRINTED], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(wanted)
