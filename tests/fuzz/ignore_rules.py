"""Hostile ignore rules against hostile names. The oracle: a verdict or a refusal, in steps of bounded time.

Other tests compare the meaning of the rules with git. Owns what such rules and names look like.
"""

from __future__ import annotations

import os
import random
import time

from ngram_cache.ignore import IgnoreLayer, RulesTooLargeError, is_ignored

MAX_STEP_S = 2.0  # seconds of processor time
_PIECES = (
    b"*", b"**", b"?", b"/", b"[", b"]", b"!", b"^", b"-", b"\\", b"a", b"b", b"ab", b".", b"[a-z]", b"[!a]",
    b"[[:alpha:]]", b"[[:", b":]", b"**/", b"/**", b" ", b"\t", b"\r", b"\0", b"#", b"\xff", b"\xc3\xa9",
    b"{a,b}", b"(", b")", b"+", b"|", b"$", b"\\x", b"\\n", b"\xef\xbb\xbf",
)  # fmt: skip
_NAMES = (
    b"a",
    b"b",
    b"ab",
    b"-",
    b"*",
    b"[",
    b"\\",
    b".",
    b"\xff",
    b"\xc3\xa9",
    b"/",
    b"\n",
    b" ",
    b"a" * 60,
)


def check(rng: random.Random) -> None:
    """One file of rules, asked about some paths."""
    last = time.process_time()
    longest = 0.0

    def checkpoint() -> None:
        nonlocal last, longest
        now = time.process_time()
        last, longest = now, max(longest, now - last)

    try:
        layer = IgnoreLayer.parse(hostile_rules(rng), checkpoint=checkpoint)
        for _ in range(rng.randrange(1, 6)):
            checkpoint()
            path = _path(rng)
            is_ignored([layer], path, is_folder=rng.random() < 0.3, checkpoint=checkpoint)
            checkpoint()
    except RulesTooLargeError as error:
        assert len(str(error)) < 200
    checkpoint()
    assert longest < MAX_STEP_S, f"a step of {longest:.1f} s"


def hostile_rules(rng: random.Random) -> bytes:
    if rng.random() < 0.02:
        piece = b"".join(rng.choices(_PIECES, k=rng.randrange(1, 5)))
        rules = piece * int(10 ** rng.uniform(0, 3.5)) + rng.choice(_PIECES)
        return b"\n".join([rules] * int(10 ** rng.uniform(0, 2)))
    lines = [b"".join(rng.choices(_PIECES, k=rng.randrange(1, 9))) for _ in range(rng.randrange(12))]
    return b"\n".join(lines)


def _path(rng: random.Random) -> str:
    if rng.random() < 0.2:
        name = rng.choice(_NAMES) * rng.randrange(1, 300)
    else:
        name = b"".join(rng.choices(_NAMES, k=rng.randrange(1, 12)))
    names = [part for part in name[:1024].split(b"/") if part]
    return os.fsdecode(b"/".join(names) or b"a")
