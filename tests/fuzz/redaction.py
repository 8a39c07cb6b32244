"""Hostile texts with secrets in them. The oracle: the secret is gone, lines stay lines, in bounded time.

Another benchmark measures the recognition of secrets. Owns what such texts look like.
"""

from __future__ import annotations

import random
import string

from ngram_cache.redaction import blank_secrets, has_private_key

_ALPHABET = string.ascii_letters + string.digits
_PIECES = (
    "password", "bearer ", "Authorization: ", "secret", "key", "token", "=", ":", " ", "\n", "\r\n",
    "\r", '"', "'", "`", "\\", "/", "@", "://", "-----BEGIN ", "PRIVATE KEY-----", "eyJ", ".", "-p",
    "$(", "<password>", "</", ">", ">-", "|", "#", "{{", "}}", "%", "ENV ", "curl -u ", "a", "b:c@",
    "0", "é", "\U0001f600", "\0", "\u202e", "abandon ", "A" * 40, "f0" * 20, "\t", "getenv(", ",", ")",
    "IDENTIFIED BY ", "&", "_", "stringData:\n  ",
)  # fmt: skip
_PLANTED = "AWS_SECRET_ACCESS_KEY="


def check(rng: random.Random) -> None:
    """One text with a key on a line of its own somewhere in it."""
    key_rng = random.Random(rng.getrandbits(64))  # noqa: S311 - as random as keys are, whatever chose the text
    secret = "".join(key_rng.choices(_ALPHABET, k=40))
    before, after = _text(rng), _text(rng)
    text = f"{before}\n{_PLANTED}{secret}\n{after}"
    blanked = blank_secrets(text)
    assert secret not in blanked
    assert blanked.count("\n") == text.count("\n")
    assert len(blanked) <= len(text) + 64
    has_private_key(text)


def _text(rng: random.Random) -> str:
    if rng.random() < 0.02:
        piece = "".join(rng.choices(_PIECES, k=rng.randrange(1, 4)))
        return piece * int(10 ** rng.uniform(0, 4.5))
    return "".join(rng.choices(_PIECES, k=rng.randrange(60)))
