"""Which values are secrets, by the kind of the name beside which they stand."""

from __future__ import annotations

from typing import Any

import pytest

from ngram_cache.redaction.rule import Finding
from ngram_cache.redaction.values import (
    always,
    is_credential,
    is_given_password,
    is_key,
    is_no_port,
    is_password,
    is_token,
)


def finding(
    value: str, *, before: str = "x = ", after: str = "\n", is_quoted: bool = False, more: str = ""
) -> Finding:
    start = len(before)
    return Finding(
        before + value + after, (0, 1), (start, start + len(value)), is_quoted, {"more": more} if more else {}
    )


QUOTED: dict[str, Any] = {"is_quoted": True, "before": 'x = "', "after": '"\n'}
BEHIND: dict[str, Any] = {"after": " + y\n"}

PLACEHOLDERS = [
    "<here>",
    "{name}",
    "%(name)s",
    "$NAME",
    "%NAME%",
    "aaaaaaaaaa",
    "xX**xX**",
    "tu{9}lips",
    "9}{tulip}",
    "9{tulip}{",
    "9tulip$(x",
]
NO_PLACEHOLDERS = ["tu}9{lips", "tulips9{", "tulips}9", "tulips9$"]
WORDS = ["none", "None", "password"]
ABOUT = ["my secret is 8!", "the.password", "the-token:8a"]


@pytest.mark.parametrize("judge", [is_password, is_key, is_token])
@pytest.mark.parametrize("how", [{}, QUOTED])
@pytest.mark.parametrize("value", [*PLACEHOLDERS, *WORDS, " None ", *ABOUT])
def test_a_placeholder_and_a_word_about_a_secret_are_none(
    judge: Any, value: str, how: dict[str, Any]
) -> None:
    assert judge(finding(value, **how)) is False


@pytest.mark.parametrize("judge", [is_password, is_key, is_token, is_given_password, is_no_port])
@pytest.mark.parametrize("value", [*NO_PLACEHOLDERS, "secret-tulip123", "secret9+tulip"])
def test_what_only_looks_like_one_is_a_secret(judge: Any, value: str) -> None:
    assert judge(finding(value, **QUOTED)) is True


@pytest.mark.parametrize("judge", [is_password, is_key, is_token])
@pytest.mark.parametrize(
    ("after", "is_secret"),
    [("(y", False), ("[y", False), ("{y", False), ("<y", False), (")y", True), ("", True)],
)
def test_what_is_called_is_no_secret(judge: Any, after: str, is_secret: bool) -> None:
    assert judge(finding("zx81-spectrum", after=after)) is is_secret
    assert judge(finding("zx81-spectrum", after=after, is_quoted=True)) is True


@pytest.mark.parametrize(
    ("value", "how", "is_secret"),
    [
        ("tulip", QUOTED, True),
        ("correct horse", QUOTED, True),
        ("tu.lip", QUOTED, True),
        ("tuliX", {}, True),
        ("a\nb", {"after": "("}, True),
        ("/etc/tulip", QUOTED, True),
        ("/etc/tulip", {}, False),
        ("~/tulip", {}, False),
        ("C:\\tulip", {}, False),
        ("a\nb", BEHIND, True),
        ("1234", BEHIND, True),
        ("123", {}, False),
        ("tu9lip", BEHIND, True),
        ("tulip", {}, True),
        ("tulip", BEHIND, False),
        ("tul", {}, True),
        ("tu", {}, False),
        ("tu.lip", {}, False),
        ("tu:lip", {}, False),
        ("tu->lip", {}, False),
        ("tu-lip->rose", BEHIND, False),
        ("tu-lip->r9se", {}, True),
        ("zx81-spectrum", {"more": "izer"}, False),
        ("zx81-spectrum", {"more": "_x"}, True),
        ("tulip", {"more": "_x"}, False),
        ("tu9li", {"more": "s", **QUOTED}, False),
    ],
)
def test_what_a_password_may_be(value: str, how: dict[str, Any], is_secret: bool) -> None:
    assert is_password(finding(value, **how)) is is_secret


@pytest.mark.parametrize(
    ("before", "after", "is_secret"),
    [
        ("x = ", "", True),
        ("y\nx = ", " + y\n", False),
        ("x = ", "  # y\n", True),
        ("x = ", " // y\n", True),
        ("x = ", " */\n", True),
        ("x = ", " -->\n", True),
        ("x = ", "\\n y\n", True),
        ("x = ", '"\ny', True),
        ("x = ", "'\ny", True),
        ("x = ", '"y\n', False),
        ("x = ", "\ny\n", True),
        ("x = ", " " * 199 + "y\n", False),
        ("x = ", " " * 200 + "y\n", True),
        ("x = ", " " * 199 + "\ny", True),
        ("x = ", " y" + " " * 300, False),
        ("=", " y\n", True),
        ("x=", " y\n", True),
        ("x=", ";y\n", True),
        ("x=", '"y\n', True),
        ("x=", "'y\n", True),
        ("x=", ",y\n", False),
        ("x=", "\ty\n", False),
        ("x =", " y\n", False),
        ("x==", " y\n", False),
        ("x:=", " y\n", True),
        ("=:", " y\n", False),
        ("x=", " if y\n", False),
        ("x=", " for y\n", False),
        ("x=", " and y\n", False),
        ("x=", " or y\n", False),
        ("x=", " order\n", True),
    ],
)
def test_where_a_bare_word_is_a_password(before: str, after: str, is_secret: bool) -> None:
    assert is_password(finding("tulip", before=before, after=after)) is is_secret


@pytest.mark.parametrize(
    ("value", "how", "is_secret"),
    [
        ("abcd", QUOTED, True),
        ("abc", QUOTED, False),
        ("a\nbc", {}, True),
        ("a\nb", {}, False),
        ("abcd", {"more": "s", **QUOTED}, False),
        ("zx81-spe", {"more": "s", **QUOTED}, True),
        ("zx81-spe", {}, True),
        ("zx81-sp", {}, False),
        ("abcdefgh", {}, False),
        ("12345678", {}, False),
        ("abc.defgh", {}, False),
        ("abc->defgh", {}, False),
        ("abc->defg8", {}, True),
    ],
)
def test_what_a_key_may_be(value: str, how: dict[str, Any], is_secret: bool) -> None:
    assert is_key(finding(value, **how)) is is_secret


@pytest.mark.parametrize(
    ("value", "how", "is_secret"),
    [
        ("abc12!", QUOTED, True),
        ("ab12!", QUOTED, False),
        ("abc1234!", {}, True),
        ("abc123!", {}, False),
        ("abc 1234!", QUOTED, False),
        (" abc1234!", QUOTED, True),
        ("12345678", QUOTED, False),
        ("/a/b1/c2d", QUOTED, False),
        ("abcdefgh", QUOTED, False),
        ("abc1234!", {"more": "s"}, True),
        ("abc1234!", {"more": "sx"}, False),
        ("abc1234!", {"more": "izer"}, False),
        ("abc1234!", {"more": "_id"}, True),
        ("abc1234!", {"more": "Id"}, True),
    ],
)
def test_what_a_token_may_be(value: str, how: dict[str, Any], is_secret: bool) -> None:
    assert is_token(finding(value, **how)) is is_secret


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("tulip", True),
        ("1a", True),
        ("TULIP", False),
        ("DB_TULIP", False),
        *((no, False) for no in PLACEHOLDERS + WORDS),
    ],
)
def test_what_is_given_as_a_password(value: str, is_secret: bool) -> None:
    assert is_given_password(finding(value)) is is_secret


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("abcdefg1", True),
        ("abcd+efg", True),
        ("abcdefg=", True),
        ("abcdefgh", False),
        ("abcdeXgh", False),
        ("qZtKfWpLxRvBnMcHjGdSyTwQaXeUoIzP", True),
        ("YTphYWJh", True),  # a:aaba
        ("YWJjZGVm", False),  # abcdef
        ("YTphYWJ", False),
        ("YTph~YWJh", False),
    ],
)
def test_what_a_credential_may_be(value: str, is_secret: bool) -> None:
    assert is_credential(finding(value)) is is_secret


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("tulip", True),
        ("8080", False),
        ("8080/path/tulip", False),
        ("tulip/8080", True),
        ("tulip/8080/7", True),
        *((no, False) for no in PLACEHOLDERS + WORDS),
    ],
)
def test_what_stands_in_an_address(value: str, is_secret: bool) -> None:
    assert is_no_port(finding(value)) is is_secret


def test_a_form_that_is_proof_needs_no_other() -> None:
    assert always(finding("none")) is True
