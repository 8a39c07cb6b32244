"""Which runs of letters read like a key, at the limits."""

from __future__ import annotations

import pytest

from ngram_cache.redaction.rule import without
from ngram_cache.redaction.values import falls_apart, find_random, looks_random

HASH = "0123456789abcdef0123456789abcdef01234567"
KEY = "qZ1tK2fW3pL4xR5vB6nM7cH8jG9dS0yT"


@pytest.mark.parametrize(
    ("run", "is_random"),
    [
        pytest.param("0123456789" * 3, False, id="digits alone"),
        pytest.param(HASH, True, id="a hash"),
        pytest.param("0x" + HASH, True, id="a hash with its sign"),
        pytest.param("abcdefab" * 4, False, id="hexadecimal letters without a digit"),
        pytest.param("abcdef1" * 4, False, id="seven different ones"),
        pytest.param("abcdef12" * 4, True, id="eight different ones"),
        pytest.param(KEY, True, id="a key"),
        pytest.param("qZtKfWpLxRvBnMcHjGdSyTwQ", True, id="24 mixed letters without a digit"),
        pytest.param("qZtKfWpLxRvBnMcHjGdSyTw", False, id="23 of them"),
        pytest.param("qZ1tK2fW3pL4xR5v", True, id="16 with a digit"),
        pytest.param("qZ1tK2fW3pL4xR5", False, id="15 of them"),
        pytest.param("qZ1tK2fW3pL4xR5vB6n_", True, id="one sign to twenty letters"),
        pytest.param("qZ1tK2f_W3pL4xR5vB6_", False, id="two signs to twenty letters"),
        pytest.param("qZ1tK2f-W3pL4xR5vB6/n", True, id="two signs to twenty-one letters"),
        pytest.param("qZtKfWpLxRvBnMcHjGdSyTwQ_b", False, id="a sign where there is no digit"),
        pytest.param("qztkfwplxrvbnmchjgdsytwq", False, id="small letters without a digit"),
        pytest.param("QZTKFWPLXRVBNMCHJGDSYTWQ", False, id="capitals without a digit"),
        pytest.param("qwer1qwer1qwer1qwer1", True, id="small letters that fall apart"),
        pytest.param("qwertyu1qwertyu1qwert1", True, id="four small letters to a word"),
        pytest.param("qwertyui1qwertyui1qwertyui1", False, id="more of them"),
        pytest.param("QWERTYUIOPA1QWERTYUIOPA1", True, id="six capitals to a word"),
        pytest.param("QWERTYUIOPAS1QWERTYUIOPA1", False, id="more of those"),
        pytest.param("qX1tX2fX3pLxXR5vX6nM7cH8j", True, id="a letter that is no sign"),
        pytest.param("Xyz" * 8, True, id="three letters to a word, and no digit"),
        pytest.param("qwerTyuioPasdf1gHjklZ", False, id="a name in camels"),
    ],
)
def test_what_reads_like_a_key(run: str, is_random: bool) -> None:
    assert looks_random(run) is is_random


@pytest.mark.parametrize(
    ("value", "does_fall_apart"),
    [
        pytest.param("gIirgrwphPzQrWrnrIUXZeqevzeeDhfKxVCEzxrf", True, id="a key without a digit"),
        pytest.param("Wxyzu" * 4 + "Wxyz", False, id="five letters to a word"),
        pytest.param("Wxyz" * 6, True, id="four letters to a word"),
        pytest.param("Wxyz" * 3 + "Wxyzu" * 3, True, id="27 letters in six words"),
        pytest.param("Wxyz" * 2 + "Wxyzu" * 4, False, id="28 letters in six words"),
        pytest.param("Wxyz" * 5 + "Wxy", False, id="23 letters"),
        pytest.param("wxyz" * 6, False, id="small letters"),
        pytest.param("WXYZ" * 6, False, id="capitals"),
        pytest.param("Wxyz" * 6 + "_", False, id="a sign"),
        pytest.param("getDefaultCredentialsProviderChain", False, id="a name"),
    ],
)
def test_which_letters_behind_a_telling_name_are_no_name(value: str, does_fall_apart: bool) -> None:
    assert falls_apart(value) is does_fall_apart


@pytest.mark.parametrize(
    ("run", "left"),
    [
        (KEY, ""),
        (f"a.{KEY}.b", "a..b"),
        ("id_550e8400-e29b-41d4-a716-446655440000", "id_"),
        (f"id_550e8400-e29b-41d4-a716-446655440000.{KEY}", "id_."),
        ("ordinary_name_of_a_module_of_mine", "ordinary_name_of_a_module_of_mine"),
        ("configurationvalue/ordinaryname", "configurationvalue/ordinaryname"),
        (f"host/commit/{HASH}", f"host/commit/{HASH}"),
        (f"{KEY}.host/blob/{HASH}.{KEY}", f".host/blob/{HASH}."),
        (f"host/commits/{HASH}", "host/commits/"),
        (f"a_name_of_mine_and_yours_{KEY}", "a_name_of_mine_and_yours_"),
        (f"a_name_of_mine_that_is_long_extremely/{KEY}/long", "a_name_of_mine_that_is_long_extremely//long"),
    ],
)
def test_what_is_left_of_a_run(run: str, left: str) -> None:
    assert without(run, find_random(run)) == left
