"""No text makes redaction slow: its time grows with the text, whatever stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _constants, _parser
from typing import Any

import pytest

from ngram_cache.redaction import blank_secrets, forms, has_private_key, values
from ngram_cache.redaction.names import COMMANDS, NAMES
from tests.growth import cpu_s, growth

RULES = (*COMMANDS, *NAMES)
_MAX_BOUND = 1 << 16
_SHORT, _LONG = 5_000, 20_000
_WORTH_A_LOOK_S = 0.015

# Text that triggers a rule again and again, or keeps one busy without ever satisfying it.
HOSTILE = [
    *dict.fromkeys(f"{rule.trigger} " for rule in RULES),
    "a", " ", "\t", "-", "=", "/", "a=", "-a", "a1b2", "Aa1", "0x", "a.b.", "'\"", "\\\"", "aaa bbb ",
    "#", "`", "abandon ", "abandon, ", "password=", "password: ", "password: |\n a\n", "password='\\",
    "password|", "é password=", "passwords = [", "pass pass", "key=key=", "://a:", "api_key='",
    "mysql a -p", "curl -u ", "name: password ", 'variable "secret" {', "<password ", "<password>",
    'password" ', "${password:", 'value="a" name="password', "stringdata:\n a", "kind: secret\n",
    "\ndata:\n a: b", "\ndata:\n a: b\nc: d\nkind: x",
    "password:\n - a", "login a password ", "echo a | sudo -s ", "a:a@tcp(", "-----BEGIN ",
    "-----BEGIN A", "eyJaaaaaaaa.", "sk-a1-", "sk-", "xoxb-", "SG.aaaaaaaaaaaaaaaa.", "basic a",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_time_grows_with_the_text(unit: str) -> None:
    """A text four times as long takes about four times as long, if it takes long at all."""
    _check("", unit)


@pytest.mark.parametrize("head", dict.fromkeys(rule.trigger for rule in RULES))
def test_the_time_grows_with_what_follows_a_trigger(head: str) -> None:
    """One trigger, and then a text that nearly goes on as the rule wants."""
    for joint in (" ", "", "=", ": ", "='", '("', "://a:"):
        for unit in ("a", "a ", "a.", "-", " ", "aA", "\\'", "\n a", "a:", "/"):
            _check(f"x {head}{joint}", unit)


def _check(head: str, unit: str) -> None:
    def redact(num_chars: int) -> None:
        text = head + (unit * (num_chars // len(unit) + 1))[:num_chars]
        has_private_key(text)
        blank_secrets(text)

    if cpu_s(lambda: redact(_LONG)) > _WORTH_A_LOOK_S:
        assert growth(redact, _SHORT, _LONG, below=9) < 9, unit


def test_every_repeat_has_a_bound_or_never_goes_back() -> None:
    patterns = [shape.ahead for rule in RULES for shape in rule.shapes]
    patterns += [rule.guard for rule in RULES]
    patterns += [forms.KNOWN, forms._PHRASE]
    for pattern in filter(None, patterns):
        loose = list(_loose_repeats(_parser.parse(pattern.pattern, pattern.flags)))
        assert not loose, pattern.pattern


def test_runs_of_letters_are_looked_at_within_bounds() -> None:
    for name in ("_PIECE", "_HEX", "_RANDOM_RUN"):
        pattern: re.Pattern[str] = getattr(values, name)
        assert not list(_loose_repeats(_parser.parse(pattern.pattern)))


def _loose_repeats(parsed: Iterable[Any]) -> Iterator[Any]:
    """The repeats, at any depth, that may be tried at more lengths than a bound."""
    for operation, argument in parsed:
        if operation in {_constants.MAX_REPEAT, _constants.MIN_REPEAT} and argument[1] > _MAX_BOUND:
            yield argument
        yield from _loose_repeats(_inner(argument))


def _inner(argument: Any) -> Iterator[Any]:
    parts = argument if isinstance(argument, tuple | list) else [argument]
    for part in parts:
        if isinstance(part, _parser.SubPattern):
            yield from part
        elif isinstance(part, list):
            yield from (item for inner in part if isinstance(inner, _parser.SubPattern) for item in inner)


def test_a_secret_longer_than_what_a_rule_looks_at_goes_as_a_whole() -> None:
    secret = "lantern!" * 500
    assert "lantern" not in blank_secrets(f'password = "{secret}"\n')
    assert "lantern" not in blank_secrets(f"DB_PASSWORD={secret}\n")


def test_a_secret_within_a_long_line_is_found_wherever_it_stands() -> None:
    for num_before in (0, 100, 159, 160, 4_000, 40_000):
        line = "x " * num_before + 'password = "Tulip2024!" ' + "y " * 2_000
        assert "Tulip2024" not in blank_secrets(line)
