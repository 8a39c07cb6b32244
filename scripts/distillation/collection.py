"""Windows of real code, laid out as prompts, and the target's results for them, kept on disk in shards.

The results are states, keys and values. Collection goes on where it stopped: a shard is drawn from its own
seed and appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from completion_engine.errors import UserError
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Progress
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from ngram_cache.repository import Repository, RepositoryOptions, SkippedFileError
from scripts.distillation.trained_network import Batch

MAX_FILES = 20_000
_HELD_OUT = 20  # one of this number of files is never trained on
_MIN_CHARS = 600
_CHARS_PER_TOKEN = 4.5  # characters of code, generously, so that a window is filled
_HOLE = (0.3, 0.85)  # part of a window that stands in the middle, between prefix and suffix
_SUFFIX = (0.05, 0.25)
_MAX_TRIES = 1000
_WINDOWS_PER_SHARD = 16
_ROWS_AT_ONCE = 256  # no user waits for a pass: a tenth faster than in the chunks of a prompt
_PADDING = -1
_LENGTH_STEP = 32  # step of lengths in batches
_FACTS = "collection.json"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts to train on and texts to measure with; no file is in both."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]

    @property
    def num_chars(self) -> int:
        """Characters to train on."""
        return sum(map(len, self.train))


@dataclass(frozen=True, slots=True)
class Window:
    """`tokens` of one text; those before `num_prompt` stand before the hole that the target fills."""

    tokens: tuple[int, ...]
    num_prompt: int


def read_corpus(folder: Path, held_out: Path | None, report: Progress) -> Corpus:
    """The source files below `folder` to train on, those below `held_out` to measure with.

    Without `held_out`, some files below `folder` are measured with, chosen by a hash of their path. Raises
    UserError where too few are found.
    """
    found = _read(folder, report)
    if held_out is None:
        train = [text for path, text in found.items() if not is_held_out(path)]
        measured = [text for path, text in found.items() if is_held_out(path)]
    else:
        train, measured = list(found.values()), list(_read(held_out, report).values())
    if not train or not measured:
        raise UserError(
            f"There is too little source code in {folder if not train else held_out or folder}.",
            advice="Name a folder with a few hundred source files.",
        )
    return Corpus(tuple(train), tuple(measured))


def _read(folder: Path, report: Progress) -> dict[str, str]:
    """Texts by path, of all files that may be indexed and are long enough."""
    repository = Repository(folder, RepositoryOptions(max_files=MAX_FILES))
    files = sorted(repository.walk().files, key=lambda file: file.path)
    found: dict[str, str] = {}
    for at, file in enumerate(files):
        report("Reading code", at, len(files))
        try:
            text = repository.read(file)
        except SkippedFileError:
            continue
        if len(text) >= _MIN_CHARS:
            found[file.path] = text
    report("Reading code", len(files), len(files))
    return found


def is_held_out(path: str) -> bool:
    """Whether the file at `path`, relative to its folder, is for measuring only."""
    return hashlib.blake2b(path.encode(), digest_size=4).digest()[0] % _HELD_OUT == 0


def draw_windows(
    texts: Sequence[str], tokenizer: Tokenizer, num_tokens: int, rng: random.Random
) -> Iterator[Window]:
    """Endless windows of at most `num_tokens` tokens out of texts drawn at random."""
    while True:
        yield _draw(texts, tokenizer, num_tokens, rng)


def _draw(texts: Sequence[str], tokenizer: Tokenizer, num_tokens: int, rng: random.Random) -> Window:
    room = num_tokens - len(tokenizer.leading_ids) - 4
    for _ in range(_MAX_TRIES):
        text = rng.choice(texts)
        num_chars = int(num_tokens * _CHARS_PER_TOKEN)
        start = _line_start(text, rng.randrange(max(1, len(text) - num_chars // 2)))
        chunk = text[start : start + num_chars]
        hole = _line_start(chunk, int(len(chunk) * rng.uniform(1 - _HOLE[1], 1 - _HOLE[0])))
        end = len(chunk) - int(len(chunk) * rng.uniform(*_SUFFIX))
        pieces = tokenizer.encode_many([chunk[:hole], chunk[hole:end], chunk[end:]])
        window = _lay_out(tokenizer, pieces, room)
        if len(window.tokens) - window.num_prompt >= 2 and len(window.tokens) <= num_tokens:
            return window  # a suffix of dense text may fill more than a window by itself
    raise UserError("The code has no text to learn from.", advice="Name a folder with source code.")


def _lay_out(tokenizer: Tokenizer, pieces: Sequence[list[int]], room: int) -> Window:
    """Prefix, suffix and middle as the target was taught to infill; one after the other where it was not."""
    prefix, middle, suffix = pieces
    surplus = max(0, sum(map(len, pieces)) - room)
    cut = min(surplus, max(0, len(middle) - 2))
    middle = middle[: len(middle) - cut]  # an end token would be wrong after a middle that was cut
    prefix = prefix[surplus - cut :]
    fim = tokenizer.fim
    if fim is None:
        prompt = [*tokenizer.leading_ids, *prefix]
        return Window((*prompt, *middle), len(prompt))
    prompt = [*tokenizer.leading_ids, fim.prefix, *prefix, fim.suffix, *suffix, fim.middle]
    ends = sorted(tokenizer.end_ids)[:1] if not cut else []
    return Window((*prompt, *middle, *ends), len(prompt))


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """What is collected. Shards of different plans must not be mixed."""

    target: str
    num_characters: int
    window_tokens: int
    memory_layer: int
    seed: int = 0


class Collection:
    """The shards below one folder."""

    def __init__(self, folder: Path, plan: CollectionPlan) -> None:
        """Raises UserError for a folder that was begun with another plan."""
        self._folder = folder
        self.plan = plan
        facts = folder / _FACTS
        plan_text = json.dumps(asdict(plan))
        if facts.is_file() and facts.read_text(encoding="utf-8") != plan_text:
            raise UserError(
                f"{folder} was made with other code, another target or other settings.",
                advice="Choose another --out, or delete that folder.",
            )
        folder.mkdir(parents=True, exist_ok=True)
        facts.write_text(plan_text, encoding="utf-8")

    def collect(
        self,
        texts: Sequence[str],
        num_tokens: int,
        parts: tuple[LanguageModel, Tokenizer],
        report: Progress,
    ) -> None:
        """Fill shards until there are `num_tokens` positions; those that are there already are kept."""
        target, tokenizer = parts
        num_shards = -(-num_tokens // (_WINDOWS_PER_SHARD * self.plan.window_tokens))
        for number in range(num_shards):
            path = self._path(number)
            if not path.is_file():
                rng = random.Random(f"{self.plan.seed}/{number}")  # noqa: S311 - a reproducible draw
                drawn = draw_windows(texts, tokenizer, self.plan.window_tokens, rng)
                windows = []
                for at, window in enumerate(islice(drawn, _WINDOWS_PER_SHARD)):
                    report("Running the target", number * _WINDOWS_PER_SHARD + at, self._total(num_shards))
                    windows.append(run_window(window, target, self.plan))
                _write(path, {name: torch.stack([w[name] for w in windows]) for name in windows[0]})
            report("Running the target", (number + 1) * _WINDOWS_PER_SHARD, self._total(num_shards))

    @property
    def shards(self) -> list[Path]:
        """Shards on disk, in order."""
        return sorted(self._folder.glob("shard-*.safetensors"))

    def _path(self, number: int) -> Path:
        return self._folder / f"shard-{number:05}.safetensors"

    @staticmethod
    def _total(num_shards: int) -> int:
        return num_shards * _WINDOWS_PER_SHARD


class Shards:
    """The windows of some shards, read when they are asked for."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files: list[Any] = [safe_open(path, framework="pt") for path in paths]
        self._places = [
            (file, at) for file in self._files for at in range(file.get_slice("tokens").get_shape()[0])
        ]
        self.lengths = [
            length
            for file in self._files
            for length in (file.get_tensor("tokens") != _PADDING).sum(-1).tolist()
        ]

    def __len__(self) -> int:
        return len(self._places)

    @property
    def num_positions(self) -> int:
        """Tokens of all windows, padding left out."""
        return sum(self.lengths)

    def batch(self, numbers: Sequence[int], device: torch.device) -> Batch:
        """The windows of these numbers, side by side; no longer than the longest of them needs."""
        places = [self._places[number] for number in numbers]
        longest = max(self.lengths[number] for number in numbers)
        end = -(-longest // _LENGTH_STEP) * _LENGTH_STEP

        def read(name: str) -> Tensor:
            return torch.cat([file.get_slice(name)[at : at + 1] for file, at in places])

        tokens = read("tokens")[:, :end].to(device).long()
        hidden = read("hidden")[:, :end].to(device)
        keys, values = (read(name)[:, :, :end].to(device) for name in ("keys", "values"))
        return Batch(tokens.clamp(min=0), hidden, keys, values, tokens != _PADDING)


@torch.inference_mode()
def run_window(window: Window, target: LanguageModel, plan: CollectionPlan) -> dict[str, Tensor]:
    """The target's states, keys and values of one window, padded to the plan's length."""
    cache = KVCache(target.cache_shape)
    tokens = list(window.tokens)
    while cache.num_cached < len(tokens):
        chunk = tokens[cache.num_cached : cache.num_cached + _ROWS_AT_ONCE]
        target.forward(chunk, cache, 0)
        cache.keep(chunk)
    length = plan.window_tokens
    padded = torch.full((length,), _PADDING, dtype=torch.int32)
    padded[: len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
    return {
        "tokens": padded,
        "hidden": cache.hidden[:length].cpu().clone(),
        "keys": cache.keys[plan.memory_layer, :, :length].cpu().clone(),
        "values": cache.values[plan.memory_layer, :, :length].cpu().clone(),
    }


def _write(path: Path, tensors: dict[str, Tensor]) -> None:
    unfinished = path.with_suffix(".part")
    save_file(tensors, unfinished)
    unfinished.replace(path)
