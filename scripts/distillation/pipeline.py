"""One drafter from beginning to end: read code, run the target over it, train, measure, write the files
and the model card.

Every part continues after an interruption. The only module that owns the order of the parts.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from completion_engine.drafting.distilled import WEIGHTS, DrafterFiles
from completion_engine.drafting.drafter_network import (
    NUM_EXACT,
    DistilledNetwork,
    DrafterShape,
    Preview,
)
from completion_engine.errors import UserError
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Progress
from completion_engine.target_model.kv_cache import CacheShape
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.passes import pad_rows
from completion_engine.target_model.threads import thread_counts, use_threads
from scripts.distillation import DistillPlan
from scripts.distillation.collection import Collection, CollectionPlan, Corpus, Shards, read_corpus
from scripts.distillation.evaluation import Acceptance, Examination, measure_acceptance
from scripts.distillation.trained_network import Batch, DrafterNetwork
from scripts.distillation.training import Trainer

WORK = "work"
_MEMORY_DEPTH = 2 / 3  # depth among the target's layers
_MLP_RATIO = 2.3  # about, relative to the hidden size
_MAX_PARAMETERS = 20_700_000  # in two bytes each, with what finds the best tokens: 45 MB to ship
_MLP_STEP = 64
_COUNTED_CHARS = 40_000_000  # characters of code, to find the tokens that it uses
_TEXTS_AT_ONCE = 64
_PREVIEWED_WINDOWS = 48
_RANK = 96
_DEPTHS = 3
_RIDGE = 1e-2  # relative to the states' mean square
_NAMED_FOLDERS = 500


@dataclass(frozen=True, slots=True)
class Distilled:
    """What came out: facts for people, and how far its drafts go."""

    files: DrafterFiles
    acceptance: Acceptance
    num_train_files: int
    num_held_out_files: int
    num_positions: int

    @property
    def num_parameters(self) -> int:
        """Weights that are the drafter's own."""
        return sum(weight.numel() for weight in self.files.weights.values())


def distill(
    folder: Path, out: Path, plan: DistillPlan, parts: tuple[LanguageModel, Tokenizer], report: Progress
) -> Distilled:
    """Train a drafter on the code in `folder` and write it to `out`, where work in progress lies too.

    Raises UserError where the code is too little, or the target is of an architecture that cannot be read or
    does not fit the drafter to begin with; DataError where that one is damaged.
    """
    target, tokenizer = parts
    if target.decoder.rotary is None:
        raise UserError(
            "Slipstream cannot train a drafter for this architecture.",
            advice="Choose a Llama, Qwen2, Qwen3 or Mistral model.",
        )
    begun = _read_begun(plan.begin_with, target) if plan.begin_with else None
    corpus = read_corpus(folder, plan.held_out, report)
    window_tokens = min(plan.window_tokens, target.capacity - pad_rows(1))
    layer = begun.shape.memory_layer if begun else round(target.cache_shape.num_layers * _MEMORY_DEPTH)
    drawn = CollectionPlan(plan.target, corpus.num_chars, window_tokens, layer, _seed(plan.begin_with))
    collection = Collection(out / WORK, drawn)
    collection.collect(corpus.train, plan.num_tokens, parts, report)
    shards = Shards(collection.shards)
    tokens = begun.tokens.long() if begun else frequent_tokens(corpus, tokenizer, plan.vocabulary, report)
    network = DrafterNetwork(
        begun.shape if begun else shape_for(target.cache_shape, target.vocab_size, layer, len(tokens)), target
    )
    head = target.decoder.head_rows(tokens.to(target.device))
    use_threads(max(thread_counts()))  # passes left torch fewer, and training goes on for hours
    trainer = Trainer(network, head, tokens.to(target.device), plan.training, out / WORK)
    trainer.run(shards, report, begun.weights if begun else None)
    shown = range(min(_PREVIEWED_WINDOWS, len(shards.lengths)))
    preview = fit_preview(network, (shards.batch([at], head.device) for at in shown), head)
    weights = {name: weight.detach().to(torch.bfloat16) for name, weight in network.weights.items()}
    examination = Examination(corpus.held_out, window_tokens, plan.num_measured, plan.tokens_measured)
    fast = DistilledNetwork(weights, tokens, network.shape, target, preview)
    acceptance = measure_acceptance(fast, tokens, parts, examination, report)
    files = DrafterFiles(plan.target, network.shape, acceptance.temperatures, tokens, weights, preview)
    files.save(out)
    return Distilled(files, acceptance, len(corpus.train), len(corpus.held_out), shards.num_positions)


def _read_begun(folder: Path, target: LanguageModel) -> DrafterFiles:
    begun = DrafterFiles.read(folder)
    begun.shape.check_target(target)
    return begun


def _seed(begin_with: Path | None) -> int:
    """By which windows are drawn: another for each drafter to begin with."""
    return zlib.crc32((begin_with / WEIGHTS).read_bytes()) if begin_with else 0


def shape_for(shape: CacheShape, vocab_size: int, memory_layer: int, num_tokens: int) -> DrafterShape:
    """The geometry of a new drafter: an MLP as wide as may be shipped, but no narrower than the states."""
    hidden = shape.hidden_size
    num_heads = max(1, hidden // shape.head_size // shape.num_kv_heads) * shape.num_kv_heads
    beside_mlp = 2 * hidden * (hidden + num_heads * shape.head_size)
    largest = (_MAX_PARAMETERS - beside_mlp) // (3 * hidden * _MLP_STEP)
    return DrafterShape(
        num_layers=shape.num_layers,
        num_kv_heads=shape.num_kv_heads,
        head_size=shape.head_size,
        hidden_size=hidden,
        vocab_size=vocab_size,
        memory_layer=memory_layer,
        num_heads=num_heads,
        mlp_size=max(-(-hidden // _MLP_STEP), min(round(hidden * _MLP_RATIO / _MLP_STEP), largest))
        * _MLP_STEP,
        num_tokens=num_tokens,
    )


def frequent_tokens(corpus: Corpus, tokenizer: Tokenizer, num_tokens: int, report: Progress) -> Tensor:
    """The ids [num_tokens] that the code uses most, most frequent first, with those that end an infill."""
    counts = torch.zeros(tokenizer.num_tokens, dtype=torch.long)
    num_chars = 0
    total = min(corpus.num_chars, _COUNTED_CHARS)
    for first in range(0, len(corpus.train), _TEXTS_AT_ONCE):
        report("Counting tokens", min(num_chars, total), total)
        texts = list(corpus.train[first : first + _TEXTS_AT_ONCE])
        ids = [token for tokens in tokenizer.encode_many(texts) for token in tokens]
        counts += torch.bincount(torch.tensor(ids, dtype=torch.long), minlength=len(counts))
        num_chars += sum(map(len, texts))
        if num_chars >= _COUNTED_CHARS:
            break
    report("Counting tokens", total, total)
    counts[list(tokenizer.end_ids)] = int(counts.max()) + 1
    num_seen = int((counts > 0).sum())
    return counts.argsort(descending=True, stable=True)[: min(num_tokens, num_seen)]


@torch.no_grad()
def fit_preview(
    network: DrafterNetwork, batches: Iterable[Batch], head: Tensor, rank: int = _RANK
) -> Preview:
    """The projection of this rank that changes logits least, in squares over states and tokens.

    `head` [num_tokens, hidden_size] are the rows of the tokens that can be guessed.
    """
    size = network.shape.hidden_size
    squares = torch.zeros(size, size, device=head.device)
    for batch in batches:
        for at, states in network.drafted(replace(batch, hidden=batch.hidden.float()), _DEPTHS):
            real = states[batch.is_real[:, at]]
            squares += real.T @ real
    squares /= squares.diagonal().mean()
    squares += torch.eye(size, device=head.device) * _RIDGE
    root = torch.linalg.cholesky(squares)
    importance = root.T @ (head.float().T @ head.float()) @ root
    main = torch.linalg.eigh(importance).eigenvectors[:, -rank:]  # eigenvalues come in rising order
    narrow = torch.linalg.solve_triangular(root.T, main, upper=True).T
    return Preview(narrow.contiguous(), root @ main)


def write_card(found: Distilled, plan: DistillPlan, code: Path, out: Path) -> None:
    """Write `README.md` into `out`. The subfolders of `code` are named as what was learnt from."""
    (out / "README.md").write_text(card_of(found, plan, code), encoding="utf-8")


def card_of(found: Distilled, plan: DistillPlan, code: Path) -> str:
    """The card as Markdown."""
    shape = found.files.shape
    training, rank = plan.training, len(found.files.preview.narrow)
    return f"""---
license: apache-2.0
base_model: {plan.target}
---

# A drafter for {plan.target}

It guesses the next tokens of `{plan.target}`, which verifies them: it changes the speed of completions,
never their text. Trained with `scripts/distillation`; weights under the Apache License 2.0.

| | |
| --- | --- |
| own parameters | {found.num_parameters / 1e6:.1f} M (bf16); embedding and head are the target's |
| tokens it can guess | {shape.num_tokens:,} |
| looks at | all of them through {rank} numbers of the state, then at the best {NUM_EXACT} as they are |
| reads | the target's last state, and keys and values that its layer {shape.memory_layer} has cached |
| trained on | {found.num_positions:,} tokens in windows drawn from {found.num_train_files:,} files |
| steps | {_steps(plan)} |
| loss | divergence from the target's distribution, first 1, then {training.draft_tokens} tokens ahead |

## How far its drafts go

Greedy drafts at every token that the target wrote by itself at {plan.num_measured} places in
{found.num_held_out_files:,} files that it was not trained on, {plan.tokens_measured} tokens each.

{_figures(found)}

## Code it was trained on

{_corpus(code)}
{_measured(plan.held_out)}"""


def _steps(plan: DistillPlan) -> str:
    training = plan.training
    steps = f"{training.num_steps:,} of {training.batch_windows} windows of {plan.window_tokens:,} tokens"
    return f"{steps}, beginning with an earlier drafter" if plan.begin_with else steps


def _figures(found: Distilled) -> str:
    acceptance = found.acceptance
    rows = zip(
        acceptance.num_tried,
        acceptance.conditional,
        acceptance.survival,
        acceptance.temperatures,
        strict=True,
    )
    lines = [
        f"| {depth} | {tried:,} | {conditional:.3f} | {survival:.3f} | {temperature:.2f} |"
        for depth, (tried, conditional, survival, temperature) in enumerate(rows, 1)
    ]
    head = "| depth | guesses | right, if all before are | right to this depth | temperature |"
    mean = f"Accepted tokens of a greedy draft of {len(lines)}: {sum(acceptance.survival):.2f} on average."
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *lines, "", mean])


def _measured(held_out: Path | None) -> str:
    return "" if held_out is None else f"\n## Code it was measured on\n\n{_corpus(held_out)}\n"


def _corpus(code: Path) -> str:
    names = sorted(place.name for place in code.iterdir() if place.is_dir() and place.name[0] != ".")
    if not names:
        return f"`{code.resolve().name}`"
    listed = ", ".join(names[:_NAMED_FOLDERS])
    return listed + (f", and {len(names) - _NAMED_FOLDERS} more" if len(names) > _NAMED_FOLDERS else "")
