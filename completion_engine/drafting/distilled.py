"""Drafts by a small network that was trained for one target: a beam search over its likeliest tokens.

Each draft is computed from the target's KV cache and the tokens after it; the network learns nothing at run
time. A drafter's folder holds `config.json` and `drafter.safetensors`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from completion_engine.checksum import checksum
from completion_engine.cpu.kernels.language import array_of
from completion_engine.cpu.kernels.top_k import likeliest
from completion_engine.drafting.drafter_network import DistilledNetwork, DrafterShape, Preview
from completion_engine.drafting.drafts import Allowed, Draft, Drafter, DraftToken
from completion_engine.errors import DataError
from completion_engine.runtime import parse_json
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

CONFIG, WEIGHTS = "config.json", "drafter.safetensors"
_FORMAT = 2
_TOKENS, _NARROW, _WIDEN = "tokens", "preview_narrow", "preview_widen"
NUM_BEAMS = 3  # paths that are extended at each depth
_BREADTH = 4  # likeliest tokens after each path
_LEAST_PATH_PROBABILITY = 0.03  # lower ones are drafted only if they are the best of their depth
_HEALED_BREADTH = 64  # at depth 0, where token healing may allow only a few of them
_MAX_UNCACHED = (
    8  # tokens that the target has not run yet; after more, the network's states are too inaccurate
)
_TIMED_STEPS = 9


@dataclass(frozen=True, slots=True)
class DrafterFiles:
    """The files of a drafter.

    Dividing the logits at a depth by its entry of `temperatures` calibrates the probabilities; the last entry
    serves all greater depths. `tokens` [num_tokens] int32 are the ids that the drafter can propose.
    """

    target: str
    shape: DrafterShape
    temperatures: tuple[float, ...]
    tokens: Tensor
    weights: Mapping[str, Tensor]
    preview: Preview

    def save(self, folder: Path) -> None:
        """Write both files into `folder`, and create it if it does not exist."""
        folder.mkdir(parents=True, exist_ok=True)
        parts = {**self.weights, _NARROW: self.preview.narrow, _WIDEN: self.preview.widen}
        halves = {name: part.to(torch.bfloat16).contiguous() for name, part in parts.items()}
        save_file({_TOKENS: self.tokens.to(torch.int32), **halves}, folder / WEIGHTS)
        config = {
            "format": _FORMAT,
            "target": self.target,
            "shape": asdict(self.shape),
            "temperatures": list(self.temperatures),
            "checksum": _checksum_of(folder),
        }
        (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> DrafterFiles:
        """Read a drafter. Raises DataError when files are missing, damaged or of another format."""
        try:
            config = parse_json((folder / CONFIG).read_text(encoding="utf-8"))
            _check_stored(folder, config["format"], config["checksum"])
            shape = DrafterShape(**config["shape"])
            weights = load_file(folder / WEIGHTS)
            tokens, preview = weights.pop(_TOKENS), Preview(weights.pop(_NARROW), weights.pop(_WIDEN))
            temperatures = tuple(map(float, config["temperatures"]))
            files = cls(config["target"], shape, temperatures, tokens, weights, preview)
            files.check()
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"The drafter in {folder} cannot be read: {error}.",
                advice="Install Slipstream again, or train your own again.",
            ) from error
        return files

    def check(self) -> None:
        """Check that the parts fit together. Raises ValueError."""
        sizes = {name: tuple(weight.shape) for name, weight in self.weights.items()}
        if sizes != self.shape.sizes or tuple(self.tokens.shape) != (self.shape.num_tokens,):
            raise ValueError("the weights have other sizes than the configuration says")
        self.preview.check(self.shape.hidden_size)
        if not 0 <= int(self.tokens.min()) <= int(self.tokens.max()) < self.shape.vocab_size:
            raise ValueError("it guesses tokens that do not exist")
        if not self.temperatures or min(self.temperatures) <= 0:
            raise ValueError("temperatures must be positive")


class DistilledDrafter(Drafter):
    """Drafts from the target's last hidden state and from what one of its layers has cached."""

    def __init__(
        self, network: DistilledNetwork, tokens: Tensor, temperatures: Sequence[float], timed_on: KVCache
    ) -> None:
        """`timed_on` is a cache of the target's shape whose contents do not matter."""
        super().__init__()
        self._network, self._cache = network, timed_on
        self.num_bytes = network.num_bytes
        self._tokens = tokens.long().cpu().numpy()
        self._temperatures = tuple(temperatures)
        self.step_ms = self._measure()

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        """See `Drafter.begin`."""
        super().begin(prompt, cache)
        self._cache = cache

    @torch.inference_mode()
    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:
        """See `Drafter.drafts`. Empty after an empty cache or a long run of uncached tokens."""
        num_cached = self._cache.num_cached
        uncached = self._path[num_cached:]
        if not (num_cached and 0 < len(uncached) <= _MAX_UNCACHED and max_tokens > 0):
            return []
        states = self._cache.hidden[num_cached - 1 : num_cached]
        for at, token in enumerate(uncached):
            states, logits = self._step([token], states, num_cached + at)
        tree: list[DraftToken] = []
        beams = [(-1, 1.0)]  # node of the tree, probability of its path
        for depth in range(max_tokens):
            found = self._likeliest(logits, depth, allowed)
            best = list(_append_guesses(tree, beams, found, depth).items())[:NUM_BEAMS]
            alive = [(row, beam) for (row, _), beam in best if beam[1] >= min_probability]
            position = len(self._path) + depth
            if not alive or depth + 1 == max_tokens or position >= self._cache.capacity:
                break
            beams = [beam for _, beam in alive]
            tokens = [tree[node].token for node, _ in beams]
            states, logits = self._step(tokens, states[[row for row, _ in alive]], position)
        return [tuple(tree)] if tree else []

    def _step(self, tokens: list[int], states: Tensor, position: int) -> tuple[Tensor, Tensor]:
        rows = torch.tensor(tokens, device=states.device)
        return self._network.step(rows, states, self._cache, position)

    def _likeliest(self, logits: Tensor, depth: int, allowed: Allowed) -> list[list[tuple[float, int]]]:
        """Return for each beam the probabilities and ids of its likeliest tokens; at depth 0 only `allowed`
        ones.
        """
        temperature = self._temperatures[min(depth, len(self._temperatures) - 1)]
        breadth: int = min(_BREADTH if depth else _HEALED_BREADTH, logits.shape[-1])
        found = np.empty((len(logits), breadth), np.int64)
        values = np.empty(found.shape, np.float32)
        likeliest(array_of(logits.float().cpu()), temperature, found, values)
        ids = self._tokens[found].tolist()
        pairs = [list(zip(*pair, strict=True)) for pair in zip(values.tolist(), ids, strict=True)]
        return pairs if depth else [_among(pairs[0], allowed)]

    def _measure(self) -> float:
        """Return the milliseconds of one more depth, the fastest of a few runs."""
        cache = self._cache
        cache.pretend(min(512, cache.capacity - 1))
        states = cache.hidden[:1].expand(NUM_BEAMS, -1)
        times = []
        with torch.inference_mode():
            for _ in range(_TIMED_STEPS):
                begin = time.perf_counter()
                _, logits = self._step([0] * NUM_BEAMS, states, cache.num_cached)
                self._likeliest(logits, 1, bool)
                times.append((time.perf_counter() - begin) * 1e3)
        cache.rewind(0)
        return min(times)


def load_distilled(folder: Path, target: LanguageModel) -> DistilledDrafter:
    """Load the drafter in `folder` for `target`.

    Raises DataError for damaged files, UserError if it was made for another target.
    """
    files = DrafterFiles.read(folder)
    network = DistilledNetwork(files.weights, files.tokens, files.shape, target, files.preview)
    return DistilledDrafter(network, files.tokens, files.temperatures, KVCache(target.cache_shape))


def _checksum_of(folder: Path) -> str:
    return checksum(np.memmap(folder / WEIGHTS, np.uint8, "r"))


def _check_stored(folder: Path, found: object, wanted: object) -> None:
    """Raise ValueError for files of another format, and for weights with another checksum."""
    if found != _FORMAT:
        raise ValueError(f"its format is {found}, not {_FORMAT}")
    if wanted != _checksum_of(folder):
        raise ValueError(f"the checksum of {WEIGHTS} does not match")


def _among(found: Sequence[tuple[float, int]], allowed: Allowed) -> list[tuple[float, int]]:
    """Return the likeliest allowed tokens, with probabilities relative to all allowed ones in `found`."""
    kept = [pair for pair in found if allowed(pair[1])]
    if len(kept) == len(found):
        return kept[:_BREADTH]
    total = sum(value for value, _ in kept)
    return [(value / total, token) for value, token in kept[:_BREADTH]]


def _append_guesses(
    tree: list[DraftToken],
    beams: Sequence[tuple[int, float]],
    found: Sequence[Sequence[tuple[float, int]]],
    depth: int,
) -> dict[tuple[int, int], tuple[int, float]]:
    """Append the likeliest tokens after `beams` to the tree.

    A beam is a node of the tree and its path probability. `found` holds for each beam the probabilities and
    ids of the tokens after it, best first. Returns the new beams, best first; a key is the index of the beam
    before it and the token's rank there.
    """
    guesses = [
        (path * probability, probability, token, node, (row, rank))
        for row, ((node, path), pairs) in enumerate(zip(beams, found, strict=True))
        for rank, (probability, token) in enumerate(pairs)
    ]
    guesses.sort(key=lambda guess: -guess[0])
    grown: dict[tuple[int, int], tuple[int, float]] = {}
    for path, probability, token, parent, at in guesses[: 2 * NUM_BEAMS]:
        if not path or (grown and path < _LEAST_PATH_PROBABILITY):
            break
        grown[at] = len(tree), path
        tree.append(DraftToken(token, "neural", "distilled", depth, probability, parent))
    return grown
