"""`slipstream bench`: measurements on the user's own code, each a table for people and one JSON line last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.request import MemoryWish
from lsp_server.commands.bench_exactness import ExactnessWish, measure_exactness
from lsp_server.commands.bench_speed import measure_speed
from lsp_server.commands.cursor_samples import repository_samples
from lsp_server.commands.local_engine import named_target, settings_for
from lsp_server.commands.repository_index import build_index, checked_folder
from lsp_server.commands.terminal import interruptible, progress_bar, show_figures, show_rows, write_json

if TYPE_CHECKING:
    from completion_engine.request import Progress
    from ngram_cache import NgramIndex

app = typer.Typer(
    help="Measure on your own code: exactness, speed.", no_args_is_help=True, add_completion=False
)

Prompts = Annotated[int, typer.Option("--prompts", min=1, help="Number of prompts.")]
Tokens = Annotated[int, typer.Option("--tokens", min=2, help="Number of tokens to write for each prompt.")]
Sources = Annotated[Path, typer.Option("--sources", help="A repository; its index is updated.")]
Target = Annotated[str, typer.Option("--target", help="Model id, path or auto.", callback=named_target)]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, bfloat16, float32, int8, or int4 on a GPU.")]
DraftModel = Annotated[
    str, typer.Option("--draft-model", help="A smaller model of its family, or a trained drafter's folder.")
]
Temperature = Annotated[float, typer.Option("--temperature", min=0.0, max=2.0)]
Memory = Annotated[MemoryWish, typer.Option("--memory", help="The setting repositoryMemory.")]
Json = Annotated[bool, typer.Option("--json", help="Print the JSON line only.")]


@app.command()
def exactness(  # noqa: PLR0913 - one argument per option
    *,
    prompts: Prompts = 200,
    tokens: Tokens = 64,
    sources: Sources = Path(),
    target: Target = DEFAULT_TARGET,
    draft_model: DraftModel = "",
    dtype: Dtype = "auto",
    temperature: Temperature = 0.0,
    memory: Memory = "auto",
    json: Json = False,
) -> None:
    """Count the tokens that differ between drafters on, in trees and in chains, and off.

    Exit code 1 if any token differs, or if it was ended before all prompts were compared.
    """
    root = checked_folder(sources)
    samples = repository_samples(root, prompts)
    wish = ExactnessWish(tokens, temperature, memory)
    with interruptible(), progress_bar(quiet=json) as report:
        engine = CompletionEngine.load(
            EngineConfig(target=target, draft_model=draft_model, dtype=dtype), report
        )
        found = measure_exactness(engine, samples, _index_of(root, engine, report), wish, report)
    show_figures(found, title="Drafters on against off, same target, token by token", json=json)
    if not found["is_exact"]:
        raise typer.Exit(1)


@app.command()
def speed(  # noqa: PLR0913 - as above
    *,
    prompts: Prompts = 10,
    tokens: Tokens = 48,
    sources: Sources = Path(),
    target: Target = DEFAULT_TARGET,
    dtype: Dtype = "auto",
    json: Json = False,
) -> None:
    """Time passes by width, and tokens beside transformers and llama.cpp where they are installed."""
    root = checked_folder(sources)
    samples = repository_samples(root, prompts)
    with progress_bar(quiet=json) as report:
        engine = CompletionEngine.load(EngineConfig(target=target, dtype=dtype), report)
        found = measure_speed(engine, _index_of(root, engine, report), samples, tokens, report)
    about = {"bench": "speed", "target": target, "dtype": engine.describe()["dtype"]}
    if not json:
        passes = [(f"pass of {width} rows", f"{ms:.1f}") for width, ms in found["pass_ms"].items()]
        prompt_token = ("prompt token", f"{found['prompt_token_ms']:.2f}")
        contenders = [(f"token, {name}", f"{ms:.1f}") for name, ms in found["ms_per_token"].items()]
        absent = [(name, reason) for name, reason in found["absent"].items()]
        show_rows(
            f"{target}, {len(samples)} prompts", ("", "ms"), [*passes, prompt_token, *contenders, *absent]
        )
    write_json({**about, "num_prompts": len(samples), "tokens_asked": tokens, **found})


def _index_of(root: Path, engine: CompletionEngine, report: Progress) -> NgramIndex:
    return build_index(root, engine.tokenizer, settings_for(root).settings.index, report)[1]
