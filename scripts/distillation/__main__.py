"""`python -m scripts.distillation`: trains a target's own small drafter on given code."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from completion_engine.config import DEFAULT_TARGET
from completion_engine.errors import UserError
from completion_engine.target_model.passes import ROWS
from lsp_server.cli import run
from lsp_server.commands.local_engine import named_target
from lsp_server.commands.terminal import new_app, progress_bar, show_rows, write_json
from scripts.distillation import DistillPlan, TrainingPlan

if TYPE_CHECKING:
    from scripts.distillation.pipeline import Distilled

_DEFAULTS = DistillPlan(DEFAULT_TARGET)

app = new_app()

Code = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="Code to learn from, one subfolder for each project if possible."),
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the drafter and for unfinished work.")]
HeldOut = Annotated[
    Path | None,
    typer.Option("--held-out", help="Code to measure on. Default: a twentieth of FOLDER's files."),
]
BeginWith = Annotated[
    Path | None,
    typer.Option("--from", help="A drafter of this command to start from. Its vocabulary stays."),
]
Target = Annotated[str, typer.Option("--target", help="Model id, path or auto.")]
Tokens = Annotated[int, typer.Option("--tokens", min=1, help="Number of target positions to learn from.")]
Steps = Annotated[int, typer.Option("--steps", min=1, help="Number of training steps.")]
Window = Annotated[int, typer.Option("--window", min=4 * ROWS, help="Number of tokens in one window.")]
Vocabulary = Annotated[
    int, typer.Option("--vocabulary", min=2, help="Number of tokens in the drafter's vocabulary.")
]
Places = Annotated[int, typer.Option("--places", min=1, help="Number of cursor positions to measure.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        help="Number format of the target during training. bfloat16 is several times faster with AMX.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the JSON line only.")]


@app.command()
def main(  # noqa: PLR0913 - one argument per option
    folder: Code,
    *,
    out: Out,
    target: Target = DEFAULT_TARGET,
    held_out: HeldOut = None,
    begin_with: BeginWith = None,
    tokens: Tokens = _DEFAULTS.num_tokens,
    steps: Steps = _DEFAULTS.training.num_steps,
    window: Window = _DEFAULTS.window_tokens,
    vocabulary: Vocabulary = _DEFAULTS.vocabulary,
    places: Places = _DEFAULTS.num_measured,
    device: Device = "auto",
    dtype: Dtype = "auto",
    json: Json = False,
) -> None:
    """Train a drafter for a target on the code in FOLDER. Continues where it was stopped."""
    for given in filter(None, (folder, held_out, begin_with)):
        if not given.is_dir():
            raise UserError(f"There is no folder {given}.", advice="Name one that is there.")
    with progress_bar(quiet=json) as report:
        report("Loading libraries", 0, 0)
        from completion_engine.loading.model import load_language_model  # noqa: PLC0415 - as above
        from completion_engine.models import ModelStore  # noqa: PLC0415 - as above
        from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415 - as above
        from scripts.distillation.pipeline import distill, write_card  # noqa: PLC0415 - slow

        out.mkdir(parents=True, exist_ok=True)
        training = TrainingPlan(num_steps=steps)
        plan = DistillPlan(named_target(target), tokens, window, vocabulary, training, places)
        plan = replace(plan, held_out=held_out, begin_with=begin_with)
        model_folder = ModelStore().ensure(plan.target, report)
        report("Loading the model", 0, 0)
        parts = load_language_model(model_folder, device, dtype), load_tokenizer(model_folder)
        found = distill(folder, out, plan, parts, report)
    write_card(found, plan, folder, out)
    _show(found, out, json=json)


def _show(found: Distilled, out: Path, *, json: bool) -> None:
    acceptance = found.acceptance
    if not json:
        depths = zip(acceptance.num_tried, acceptance.conditional, acceptance.survival, strict=True)
        rows = [
            (str(depth), str(tried), f"{conditional:.3f}", f"{survival:.3f}")
            for depth, (tried, conditional, survival) in enumerate(depths, 1)
        ]
        columns = ("depth", "guesses", "right, if all before are", "right to this depth")
        show_rows(f"Acceptance of drafts by {out}", columns, rows)
        return
    write_json(
        {
            "out": str(out),
            "target": found.files.target,
            "num_parameters": found.num_parameters,
            "num_positions": found.num_positions,
            "num_files": found.num_train_files,
            "conditional_by_depth": [round(share, 4) for share in acceptance.conditional],
            "survival_by_depth": [round(share, 4) for share in acceptance.survival],
            "temperatures": list(acceptance.temperatures),
        }
    )


if __name__ == "__main__":
    run(app, sys.argv[1:])
