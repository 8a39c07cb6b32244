"""`slipstream bench`: measurements on the user's own code, each a table for people and one JSON line last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.request import MemoryWish, Progress
from lsp_server.commands.bench_exactness import ExactnessReport, compare
from lsp_server.commands.local_engine import named_target
from lsp_server.commands.sample_positions import Sample, from_folder, repository_index
from lsp_server.commands.terminal import interruptible, progress_bar, show_rows, write_json

app = typer.Typer(help="Measure on your own code: exactness.", no_args_is_help=True, add_completion=False)

Prompts = Annotated[int, typer.Option("--prompts", min=1, help="Number of prompts.")]
Tokens = Annotated[int, typer.Option("--tokens", min=1, help="Number of tokens to write for each prompt.")]
Sources = Annotated[Path, typer.Option("--sources", help="A folder of source code.")]
Target = Annotated[str, typer.Option("--target", help="Model id, path or auto.", callback=named_target)]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, bfloat16, float32, int8, or int4 on a GPU.")]
DraftModel = Annotated[
    str, typer.Option("--draft-model", help="A smaller model of its family, or a trained drafter's folder.")
]
Temperature = Annotated[float, typer.Option("--temperature", min=0.0, max=2.0)]
Memory = Annotated[MemoryWish, typer.Option("--memory", help="The setting repositoryMemory.")]
Json = Annotated[bool, typer.Option("--json", help="Print the JSON line only.")]


@app.callback()
def bench() -> None:
    """Measure on your own code: exactness."""


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
    config = EngineConfig(target=target, draft_model=draft_model, dtype=dtype)
    samples = from_folder(sources.resolve(), prompts)
    measure_exactness(samples, sources.resolve(), config, tokens, temperature, memory, json=json)


def measure_exactness(  # noqa: PLR0913 - what the options say
    samples: Sequence[Sample],
    root: Path,
    config: EngineConfig,
    tokens: int,
    temperature: float,
    memory: MemoryWish,
    *,
    json: bool,
) -> None:
    """Compare all samples with the index of `root`, and show what was found. Raises typer.Exit."""
    with interruptible(), progress_bar(quiet=json) as report:
        tree = CompletionEngine.load(config, report)
        found = _compared(tree, samples, root, tokens, temperature, memory, report)
    facts = tree.describe()
    figures: dict[str, Any] = {
        f"{name}_{key}": value for name, done in found.items() for key, value in done.as_dict().items()
    }
    figures |= {
        "bench": "exactness",
        "prompts_asked": len(samples),
        "tokens_asked": tokens,
        "temperature": temperature,
        "memory": memory,
        **{name: facts[name] for name in ("target", "device", "dtype", "exactness", "pass_ms")},
    }
    if not json:
        rows = [(name, str(value)) for name, value in figures.items()]
        show_rows("Drafters on against off, same target, token by token", ("", "value"), rows)
    write_json(figures)
    if any(done.differing or done.num_prompts < len(samples) for done in found.values()):
        raise typer.Exit(1)


def _compared(  # noqa: PLR0913 - what the options say
    tree: CompletionEngine,
    samples: Sequence[Sample],
    root: Path,
    tokens: int,
    temperature: float,
    memory: MemoryWish,
    report: Progress,
) -> Mapping[str, ExactnessReport]:
    drafted = {"tree": tree, "chain": _beside(tree, drafts_trees=False)}
    drafted["plain"] = _beside(tree, drafters=())  # beside plain decoding it shows what is noise
    report("Indexing the sources", 0, 0)
    index = repository_index(root, tree.tokenizer.encode_many)

    def tell(done: Mapping[str, ExactnessReport]) -> None:
        num_differing = sum(found.num_differing for found in done.values())
        report(f"Comparing, {num_differing} differ", done["tree"].num_prompts, len(samples))

    plain = _beside(tree, drafters=())
    at = temperature
    return compare(drafted, plain, samples, tokens, index=index, memory=memory, temperature=at, progress=tell)


def _beside(engine: CompletionEngine, **changes: Any) -> CompletionEngine:
    """Another engine on the same target."""
    return CompletionEngine(replace(engine.config, **changes), engine.target, engine.tokenizer)
