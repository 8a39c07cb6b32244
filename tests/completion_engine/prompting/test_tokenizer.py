"""Text to ids and back, the bytes that tokens spell, and the tokens that lead towards a text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.errors import DataError
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=200))
def test_what_is_encoded_is_spelt_again(tokenizer: Tokenizer, text: str) -> None:
    clean = text.encode("utf-8", "replace").decode()
    assert tokenizer.spell(tokenizer.encode(clean)) == clean.encode()


@pytest.mark.parametrize("text", ["<|fim_middle|>", "a<|endoftext|>b", "<|fim_prefix|><|fim_suffix|>"])
def test_markers_in_the_text_are_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.end_ids.isdisjoint(ids)
    assert tokenizer.spell(ids) == text.encode()


def test_control_tokens_spell_nothing_and_some_of_them_end_an_infill(tokenizer: Tokenizer) -> None:
    assert tokenizer.end_ids
    assert tokenizer.spell(sorted(tokenizer.end_ids)) == b""


@pytest.mark.parametrize("wanted", [b"re", b"    ", b"self", b"\xc3", b"zzqx"])
def test_tokens_towards_a_text_begin_it_or_go_beyond(tokenizer: Tokenizer, wanted: bytes) -> None:
    found = set(tokenizer.tokens_towards(wanted))
    for token, spelt in enumerate(tokenizer.token_bytes):
        leads = bool(spelt) and (spelt.startswith(wanted) or wanted.startswith(spelt))
        assert (token in found) == leads


def test_the_fingerprint_tells_tokenizers_apart(
    tokenizer: Tokenizer, tiny_model_dir: Path, tmp_path: Path
) -> None:
    assert load_tokenizer(tiny_model_dir).fingerprint == tokenizer.fingerprint
    other = (tiny_model_dir / "tokenizer.json").read_text().replace('"<|fim_pad|>"', '"<|fim_pat|>"')
    (tmp_path / "tokenizer.json").write_text(other)
    assert load_tokenizer(tmp_path).fingerprint != tokenizer.fingerprint


@pytest.mark.parametrize("content", [None, "", "{}", "not json"])
def test_a_folder_without_a_tokenizer_is_a_clear_error(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(DataError, match=r"cannot be read.*Download the model again"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("is_among_others", [False, True])
def test_text_is_taken_in_the_form_of_unicode_that_it_stands_in(
    form: str, is_among_others: bool, tiny_model_dir: Path, tmp_path: Path
) -> None:
    kept = {"type": "Replace", "pattern": {"String": "tulip"}, "content": "rose"}
    steps = [{"type": form}, kept]
    config = json.loads((tiny_model_dir / "tokenizer.json").read_text())
    config["normalizer"] = {"type": "Sequence", "normalizers": steps} if is_among_others else steps[0]
    (tmp_path / "tokenizer.json").write_text(json.dumps(config))
    tokenizer = load_tokenizer(tmp_path)
    text = "caf\u00e9 = cafe\u0301(\ufb01ne, \u1100\u1161, tulip)"
    taken = text.replace("tulip", "rose") if is_among_others else text
    assert tokenizer.spell(tokenizer.encode(text)) == taken.encode()
