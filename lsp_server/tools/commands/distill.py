"""`slipstream distill`: trains a target's own small drafter on given code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET
from completion_engine.distillation.card import write_card
from completion_engine.distillation.job import Distilled, DistillPlan, distill
from completion_engine.distillation.training import TrainingPlan
from completion_engine.errors import UserError
from completion_engine.loading.model import load_language_model
from completion_engine.models import ModelStore
from completion_engine.prompting.tokenizer import load_tokenizer
from completion_engine.target_model.rows import ROWS
from lsp_server.tools.bench.acceptance_plot import write_acceptance_plot
from lsp_server.tools.bench.plot import check_plot
from lsp_server.tools.commands.engine import named_target
from lsp_server.tools.commands.terminal import console, progress_bar, write_json

_DEFAULTS = DistillPlan(DEFAULT_TARGET)
_PICTURE = "acceptance.svg"

app = typer.Typer(add_completion=False)

Code = Annotated[Path, typer.Argument(metavar="FOLDER", help="Code to learn from, best by project.")]
Out = Annotated[Path, typer.Option("--out", help="Where the drafter goes, and what is not finished yet.")]
HeldOut = Annotated[
    Path | None,
    typer.Option("--held-out", help="Code to measure on; without it, a twentieth of FOLDER's files."),
]
BeginWith = Annotated[
    Path | None,
    typer.Option("--from", help="A drafter to begin with, as this command wrote it; keeps its vocabulary."),
]


@app.command()
def main(  # noqa: PLR0913 - one argument per option
    folder: Code,
    *,
    out: Out,
    target: Annotated[
        str, typer.Option("--target", help="Model id, path or auto.", callback=named_target)
    ] = DEFAULT_TARGET,
    held_out: HeldOut = None,
    begin_with: BeginWith = None,
    tokens: Annotated[
        int, typer.Option("--tokens", min=1, help="Positions of the target to learn from.")
    ] = _DEFAULTS.num_tokens,
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Steps of training.")
    ] = _DEFAULTS.training.num_steps,
    window: Annotated[
        int, typer.Option("--window", min=4 * ROWS, help="Tokens of one window.")
    ] = _DEFAULTS.window_tokens,
    vocabulary: Annotated[
        int, typer.Option("--vocabulary", min=2, help="Tokens that the drafter can guess.")
    ] = _DEFAULTS.vocabulary,
    places: Annotated[
        int, typer.Option("--places", min=1, help="Places to measure at.")
    ] = _DEFAULTS.num_measured,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            help="Precision of the target that is learnt from; bfloat16 is several times as fast under AMX.",
        ),
    ] = "auto",
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Draw how far drafts go.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print the JSON line only.")] = False,
) -> None:
    """Train a drafter for a target on the code in FOLDER. Goes on where it was stopped."""
    for place in filter(None, (folder, held_out, begin_with)):
        if not place.is_dir():
            raise UserError(f"There is no folder {place}.", advice="Name one that is there.")
    out.mkdir(parents=True, exist_ok=True)
    if plot:
        check_plot(out / _PICTURE)
    plan = DistillPlan(
        target=target,
        num_tokens=tokens,
        window_tokens=window,
        vocabulary=vocabulary,
        training=TrainingPlan(num_steps=steps),
        num_measured=places,
        held_out=held_out,
        begin_with=begin_with,
    )
    with progress_bar(quiet=json) as report:
        model_folder = ModelStore().ensure(target, report)
        report("Loading the model", 0, 0)
        parts = load_language_model(model_folder, device, dtype), load_tokenizer(model_folder)
        found = distill(folder, out, plan, parts, report)
    if plot:
        write_acceptance_plot(found.acceptance.survival, f"Drafts for {target}", out / _PICTURE)
    write_card(found, plan, folder, out, picture=_PICTURE if plot else "")
    _show(found, out, json=json)


def _show(found: Distilled, out: Path, *, json: bool) -> None:
    acceptance = found.acceptance
    if not json:
        from rich.table import Table  # noqa: PLC0415 - not needed for --json

        table = Table("depth", "guesses", "right, if all before are", "right to this depth")
        rows = zip(acceptance.num_tried, acceptance.conditional, acceptance.survival, strict=True)
        for depth, (tried, conditional, survival) in enumerate(rows, 1):
            table.add_row(str(depth), str(tried), f"{conditional:.3f}", f"{survival:.3f}")
        console().print(table)
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
