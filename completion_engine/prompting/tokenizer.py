"""The target's tokenizer: text to token ids and back, and the bytes of each token. Uses the tokenizers
library.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as FastTokenizer
from tokenizers import normalizers

from completion_engine.errors import DataError
from completion_engine.runtime import parse_json

# Names of the three FIM markers and of the tokens that end an infill, by model family.
_FIM_MARKERS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen2.5-Coder, CodeGemma, Seed-Coder
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite, SmolLM
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001 - DeepSeek-Coder spells them so
    ("▁<PRE>", "▁<SUF>", "▁<MID>"),  # CodeLlama
)
# The marker before a repository's name, and the one before a file's path.
_REPOSITORY_MARKERS = ("<|repo_name|>", "<|file_sep|>")  # Qwen2.5-Coder
_END_MARKERS = (
    "<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|im_end|>", "<|im_start|>",
    "<|file_separator|>", "<fim_pad>", "<file_sep>", "<repo_name>", "<eos>", "</s>", "<EOT>",
    "<｜end▁of▁sentence｜>",  # noqa: RUF001 - DeepSeek-Coder spells it so
)  # fmt: skip
_MAX_TAKEN_BACK = 8
_MAX_TOKENS = 1 << 22  # more than any real vocabulary; tables have one entry per token
_FORMS = (normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD)
_BYTE_TOKEN = re.compile(r"^<0x([0-9A-Fa-f]{2})>$")


@dataclass(frozen=True, slots=True)
class FimTokens:
    """Ids of the fill-in-the-middle markers."""

    prefix: int
    suffix: int
    middle: int


@dataclass(frozen=True, slots=True)
class RepositoryTokens:
    """Ids of the markers of the repository format: before the repository's name, before a file's path."""

    repository: int
    file: int


class Tokenizer:
    """Converts between text, token ids and bytes."""

    def __init__(self, fast: FastTokenizer, end_ids: frozenset[int] = frozenset()) -> None:
        self._fast = fast
        self._vocabulary = fast.get_vocab(with_added_tokens=True)
        added = {token.content: token_id for token_id, token in fast.get_added_tokens_decoder().items()}
        self.end_ids = end_ids | {added[name] for name in _END_MARKERS if name in added}
        self.leading_ids = tuple(fast.encode("").ids)
        special = {i for i, token in fast.get_added_tokens_decoder().items() if token.special}
        self._added = special | self.end_ids | set(self._fim_ids())

    @cached_property
    def fim(self) -> FimTokens | None:
        """The FIM markers; None for a model that was not trained to infill."""
        ids = self._fim_ids()
        return FimTokens(*ids) if ids else None

    @cached_property
    def repository(self) -> RepositoryTokens | None:
        """The markers of the repository format; None if the model has no format that is known here."""
        ids = [self._vocabulary[name] for name in _REPOSITORY_MARKERS if name in self._vocabulary]
        return RepositoryTokens(*ids) if len(ids) == len(_REPOSITORY_MARKERS) else None

    def _fim_ids(self) -> list[int]:
        for names in _FIM_MARKERS:
            ids = [self._vocabulary[name] for name in names if name in self._vocabulary]
            if len(ids) == len(names):
                return ids
        return []

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the tokenizer; equal for two tokenizers that give the same ids."""
        return self._facts[0]

    @cached_property
    def _facts(self) -> tuple[str, bool]:
        """The fingerprint, and whether tokens are spelled in byte-level form. Both are slow to compute."""
        text = self._fast.to_str()
        return hashlib.sha256(text.encode()).hexdigest()[:32], '"ByteLevel"' in text

    @cached_property
    def num_tokens(self) -> int:
        """Number of ids in the vocabulary; a model's logits may be padded beyond it."""
        return max(self._vocabulary.values(), default=-1) + 1

    def encode(self, text: str) -> list[int]:
        """Return the token ids of plain text. Control markers in the text are encoded as ordinary text."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: list[str]) -> list[list[int]]:
        """Return the token ids of several texts. Releases the GIL, so other threads can run."""
        encodings = self._fast.encode_batch_fast(texts, add_special_tokens=False)
        return [self._without_markers(text, e.ids) for text, e in zip(texts, encodings, strict=True)]

    def num_in_last_word(self, text: str) -> int:
        """Return how many tokens at the end of `text` belong to its last pre-tokenizer word, which tokens
        never cross.

        Returns 1 if the tokenizer has no words, or if the last word has more than `_MAX_TAKEN_BACK` tokens.
        """
        words = self._fast.encode(text, add_special_tokens=False).word_ids
        if not words or words[-1] is None:
            return 1
        num_tokens = sum(word == words[-1] for word in words[-_MAX_TAKEN_BACK - 1 :])
        return num_tokens if num_tokens <= _MAX_TAKEN_BACK else 1

    def _without_markers(self, text: str, ids: list[int]) -> list[int]:
        if self._added.isdisjoint(ids):
            return ids
        plain: list[int] = []
        for part in re.split(r"(<\|?|\|?>)", text):  # without its brackets a marker is plain text
            plain += self._fast.encode(part, add_special_tokens=False).ids
        return [token for token in plain if token not in self._added]

    def decode(self, ids: list[int]) -> str:
        """Return the text of token ids; bytes that are not UTF-8 become U+FFFD."""
        return self.spell(ids).decode("utf-8", errors="replace")

    def spell(self, ids: list[int]) -> bytes:
        """Return the bytes that the tokens spell. Control tokens spell nothing."""
        table = self.token_bytes
        return b"".join(table[token] if token < len(table) else b"" for token in ids)

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes of each token, by id."""
        table = [b""] * self.num_tokens
        spell = _speller(is_byte_level=self._facts[1])
        for token, token_id in self._vocabulary.items():
            if token_id not in self._added:
                table[token_id] = spell(token)
        return table

    @cached_property
    def _by_bytes(self) -> tuple[list[bytes], list[int]]:
        table = self.token_bytes
        ids = sorted((token for token, spelt in enumerate(table) if spelt), key=table.__getitem__)
        return [table[token] for token in ids], ids

    def tokens_towards(self, wanted: bytes) -> list[int]:
        """Return the ids of all tokens that begin with `wanted` or are a prefix of it."""
        spelt, ids = self._by_bytes
        low, high = bisect_left(spelt, wanted), bisect_left(spelt, wanted + b"\xff" * 8)
        found = ids[low:high]
        for length in range(1, len(wanted)):
            at = bisect_left(spelt, wanted[:length])
            while at < len(spelt) and spelt[at] == wanted[:length]:
                found.append(ids[at])
                at += 1
        return found


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read `tokenizer.json` of a model folder, without Unicode normalization and truncation.

    Raises DataError if the file is missing or cannot be read.
    """
    path = folder / "tokenizer.json"
    try:
        fast = FastTokenizer.from_file(str(path))
        fast.no_truncation()
        fast.no_padding()
        fast.normalizer = _without_forms(fast.normalizer)
        tokenizer = Tokenizer(fast, _end_ids_of(folder))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # Rust code raises bare Exception, and its panics are BaseException
        raise DataError(
            f"The tokenizer {path} cannot be read ({error}).", advice="Download the model again."
        ) from error
    if tokenizer.num_tokens > _MAX_TOKENS:
        raise DataError(
            f"The tokenizer {path} has token ids up to {tokenizer.num_tokens}.",
            advice="Download the model again.",
        )
    return tokenizer


def _without_forms(normalizer: Any) -> Any:
    """Return the normalizer without its Unicode normal forms, which would alter the text; None if nothing is
    left.
    """
    is_sequence = isinstance(normalizer, normalizers.Sequence)
    steps = list(normalizer) if is_sequence else [normalizer]
    others = [step for step in steps if not isinstance(step, _FORMS)]
    if len(others) == len(steps):
        return normalizer
    return normalizers.Sequence(others) if others else None


def _end_ids_of(folder: Path) -> frozenset[int]:
    """Return the end-of-text ids in the model's configuration files."""
    found: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        if path.is_file():
            config = parse_json(path.read_text(encoding="utf-8"))
            value = config.get("eos_token_id") if isinstance(config, dict) else None
            found.update(
                one for one in (value if isinstance(value, list) else [value]) if isinstance(one, int)
            )
    return frozenset(found)


def _speller(*, is_byte_level: bool) -> Callable[[str], bytes]:
    """Return the function from token strings to bytes for this family of tokenizers."""
    if is_byte_level:
        table = _OfBytes({ord(c): chr(byte) for c, byte in _byte_level_table().items()})
        return lambda token: token.translate(table).encode("latin-1")

    def spell(token: str) -> bytes:
        byte = _BYTE_TOKEN.match(token)
        return bytes([int(byte[1], 16)]) if byte else token.replace("▁", " ").encode()

    return spell


class _OfBytes(dict[int, str]):
    """A table for `str.translate` that drops all characters without an entry."""

    def __missing__(self, character: int) -> None:
        return None


def _byte_level_table() -> dict[str, int]:
    """Return the printable character of each byte in byte-level BPE (GPT-2's scheme)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in printable}
    shifted = (byte for byte in range(256) if byte not in printable)
    table.update({chr(256 + offset): byte for offset, byte in enumerate(shifted)})
    return table
