"""The model card of a drafter: its training data, and the acceptance of its drafts. Plain text out."""

from __future__ import annotations

from pathlib import Path

from completion_engine.distillation.pipeline import Distilled
from completion_engine.distillation.plans import DistillPlan
from completion_engine.drafting.distilled.drafter_network import NUM_EXACT

_NAMED_FOLDERS = 500


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
never their text. Trained with `slipstream distill`; weights under the Apache License 2.0.

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
    told = f"{training.num_steps:,} of {training.batch_windows} windows of {plan.window_tokens:,} tokens"
    return f"{told}, beginning with an earlier drafter" if plan.begin_with else told


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
    told = ", ".join(names[:_NAMED_FOLDERS])
    return told + (f", and {len(names) - _NAMED_FOLDERS} more" if len(names) > _NAMED_FOLDERS else "")
