"""Damaged `tokenizer.json` files. The oracle: a tokenizer that encodes and spells, or an error with advice.

Owns how such a file is damaged.
"""

from __future__ import annotations

import random

from completion_engine.errors import SlipstreamError
from completion_engine.prompting.tokenizer import load_tokenizer
from tests.fuzz.model_folders import damaged, sound_model
from tests.fuzz.places import own_folder

_TEXTS = ("def f():\n", "", "<|fim_prefix|>x", "é\U0001f600", "a" * 2000, "\0\r\n\t")


def check(rng: random.Random) -> None:
    """One file, loaded and asked."""
    folder = own_folder("tokenizer")
    data = (sound_model() / "tokenizer.json").read_bytes()
    (folder / "tokenizer.json").write_bytes(damaged(data, rng))
    try:
        tokenizer = load_tokenizer(folder)
    except SlipstreamError as error:
        assert error.advice
        return
    text = rng.choice(_TEXTS)
    ids = tokenizer.encode(text)
    tokenizer.spell(ids)
    tokenizer.num_in_last_word(text)
    tokenizer.tokens_towards(b"x")
