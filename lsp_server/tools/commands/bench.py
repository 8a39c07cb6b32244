"""`slipstream bench`: the measurements, each a table for people and one JSON line last."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.decoding.run import MAX_NEW_TOKENS
from completion_engine.engine import CompletionEngine
from completion_engine.loading.drafters import build_drafters
from completion_engine.models import ModelStore
from completion_engine.prompting.tokenizer import load_tokenizer
from completion_engine.request import MemoryWish, Progress
from lsp_server.tools.bench.drafting import (
    ACCEPTANCE_COLUMNS,
    ARM_COLUMNS,
    acceptance_rows,
    arm_rows,
    measure_drafting,
)
from lsp_server.tools.bench.drafting_plot import write_drafting_plot
from lsp_server.tools.bench.drafting_record import record
from lsp_server.tools.bench.drafting_trace import Traces, load, save
from lsp_server.tools.bench.exactness import ExactnessReport, compare
from lsp_server.tools.bench.peers import FAMILIES, PeerOptions, measure_peers
from lsp_server.tools.bench.peers.report import COLUMNS, absent_lines, table_rows
from lsp_server.tools.bench.plot import check_plot, write_plot
from lsp_server.tools.bench.prompts import (
    Sample,
    from_folder,
    from_tasks,
    interleaved,
    repository_index,
    source_files,
)
from lsp_server.tools.bench.released_sources import released_sources
from lsp_server.tools.bench.server import measure_server
from lsp_server.tools.commands.bench_accepting import accepting
from lsp_server.tools.commands.bench_cold import cold
from lsp_server.tools.commands.bench_eagerness import eagerness
from lsp_server.tools.commands.bench_gpu import gpu
from lsp_server.tools.commands.bench_infilling import infilling
from lsp_server.tools.commands.bench_options import Json, Target
from lsp_server.tools.commands.bench_quality import quality
from lsp_server.tools.commands.bench_remote import remote
from lsp_server.tools.commands.terminal import console, interruptible, progress_bar, show_rows, write_json
from ngram_cache.measure import measure_index

_MIN_CHARS = 1_000  # shorter files say nothing about lookups
_HELD_OUT = 20  # one file in so many is looked up instead of indexed

app = typer.Typer(
    help="Measure: exactness, peers, drafting, quality, infilling, accepting, eagerness, cold, "
    "remote, index, server, gpu.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(gpu)
app.command()(cold)
app.command()(quality)
app.command()(eagerness)
app.command()(infilling)
app.command()(accepting)
app.command()(remote)

Prompts = Annotated[int, typer.Option("--prompts", min=1, help="How many prompts.")]
Tokens = Annotated[int, typer.Option("--tokens", min=1, help="Tokens asked for each prompt.")]
Tasks = Annotated[list[Path] | None, typer.Option("--tasks", help="Infilling tasks (.jsonl.gz).")]
Sources = Annotated[
    Path | None, typer.Option("--sources", help="A folder of source code instead of recent releases.")
]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, bfloat16, float32, int8, or int4 on a GPU.")]
DraftModel = Annotated[
    str, typer.Option("--draft-model", help="A smaller model of its family, or a trained drafter's folder.")
]
Memory = Annotated[MemoryWish, typer.Option("--memory", help="The setting repositoryMemory.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw a picture (.svg, .png, .pdf).")]


@app.command()
def exactness(  # noqa: PLR0913 - one argument per option
    *,
    prompts: Prompts = 200,
    tokens: Tokens = 64,
    tasks: Tasks = None,
    sources: Sources = None,
    target: Target = DEFAULT_TARGET,
    draft_model: DraftModel = "",
    dtype: Dtype = "auto",
    temperature: Annotated[float, typer.Option("--temperature", min=0.0, max=2.0)] = 0.0,
    memory: Memory = "auto",
    json: Json = False,
) -> None:
    """Count the tokens that differ between drafters on, in trees and in chains, and off.

    Exit code 1 if any token differs, or if it was ended before all prompts were compared.
    """
    root = sources or released_sources()
    samples = _samples(prompts, tasks or [], root)
    with interruptible(), progress_bar(quiet=json) as report:
        config = EngineConfig(target=target, draft_model=draft_model, dtype=dtype)
        tree = CompletionEngine.load(config, report)
        found = _compared(tree, samples, root, tokens, temperature, memory, report)
    figures = {
        f"{name}_{key}": value for name, done in found.items() for key, value in done.as_dict().items()
    }
    figures |= {
        "bench": "exactness",
        "prompts_asked": len(samples),
        "tokens_asked": tokens,
        "temperature": temperature,
        "memory": memory,
        **_engine_facts(tree),
    }
    _show(figures, json=json, title="Drafters on against off, same target, token by token")
    if any(done.differing or done.num_prompts < len(samples) for done in found.values()):
        raise typer.Exit(1)


def _compared(  # noqa: PLR0913 - what the options say
    tree: CompletionEngine,
    samples: list[Sample],
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


@app.command()
def peers(  # noqa: PLR0913 - one argument per option
    *,
    prompts: Prompts = 20,
    tokens: Annotated[
        int, typer.Option("--tokens", min=2, max=MAX_NEW_TOKENS, help="New tokens behind each prompt.")
    ] = 64,
    tasks: Tasks = None,
    sources: Sources = None,
    target: Target = DEFAULT_TARGET,
    dtype: Dtype = "auto",
    llama_python: Annotated[
        Path | None, typer.Option("--llama-python", help="A Python interpreter that has llama-cpp-python.")
    ] = None,
    openvino_python: Annotated[
        Path | None, typer.Option("--openvino-python", help="A Python interpreter that has openvino-genai.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", help=f"Leave out, of {', '.join(FAMILIES)}.")
    ] = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Transformers, llama.cpp, OpenVINO and Slipstream, plain and drafted: the same prompts in turn."""
    if plot:
        check_plot(plot)
    samples = _samples(prompts, tasks or [], sources)
    with progress_bar(quiet=json) as report:
        left_out = tuple(without or ())
        asked = PeerOptions(target, tokens, dtype, llama_python, openvino_python, sources, left_out)
        found = measure_peers(samples, asked, report)
    if plot:
        write_plot(found, plot)
    if not json:
        show_rows("The same prompts, one run, in turn", COLUMNS, table_rows(found))
        for line in absent_lines(found):
            console().print(line, markup=False)
    write_json(found)


@app.command()
def drafting(  # noqa: PLR0913 - one argument per option
    *,
    prompts: Prompts = 40,
    tokens: Tokens = 48,
    tasks: Tasks = None,
    sources: Sources = None,
    target: Target = DEFAULT_TARGET,
    draft_model: DraftModel = "",
    dtype: Dtype = "auto",
    traces: Annotated[
        Path | None, typer.Option("--traces", help="Replay this recording; record it if there is none.")
    ] = None,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """How often each source is right, what ways of drafting come to, and what the policy leaves lying."""
    if plot:
        check_plot(plot)
    if traces is not None and traces.exists():
        recorded = load(traces)
    else:
        root = sources or released_sources()
        config = EngineConfig(target=target, draft_model=draft_model, dtype=dtype)
        recorded = _recorded(config, _samples(prompts, tasks or [], root), root, tokens, quiet=json)
        if traces is not None:
            save(recorded, traces)
    found = measure_drafting(recorded)
    if plot:
        write_drafting_plot(found, plot)
    if not json:
        _show_drafting(found)
    write_json(found)


def _show_drafting(found: Mapping[str, Any]) -> None:
    show_rows("Guesses behind true ones", ACCEPTANCE_COLUMNS, acceptance_rows(found))
    show_rows("Replayed over the same positions", ARM_COLUMNS, arm_rows(found))
    regrets = (f"{regret:+.1%} against the {name}" for name, regret in found["regret"].items())
    best = f"(the best arm over all prompts was {found['best_arm']})"
    console().print("The policy's time per token:", *regrets, best, sep="\n  ", markup=False)


def _recorded(config: EngineConfig, samples: list[Sample], root: Path, tokens: int, *, quiet: bool) -> Traces:
    with progress_bar(quiet=quiet) as report:
        engine = CompletionEngine.load(replace(config, drafters=()), report)
        drafters = build_drafters(config, engine.target, engine.tokenizer, report)
        report("Indexing the sources", 0, 0)
        index = repository_index(root, engine.tokenizer.encode_many)
        return record(
            engine, drafters, samples, tokens, index, lambda done: report("Recording", done, len(samples))
        )


@app.command()
def server(*, target: Target = DEFAULT_TARGET, json: Json = False) -> None:
    """Time per keystroke in a 20,000-line file, and how soon a cancelled request frees the engine."""
    with progress_bar(quiet=json) as report, tempfile.TemporaryDirectory() as folder:
        report("Typing and cancelling", 0, 0)
        figures = measure_server(Path(folder), target)
    _show({"bench": "server", "target": target, **figures}, json=json, title="The server itself")


@app.command()
def index(*, sources: Sources = None, target: Target = DEFAULT_TARGET, json: Json = False) -> None:
    """Build time, bytes per token, lookup and update time of the n-gram index over Python sources."""
    root = sources or released_sources()
    with progress_bar(quiet=json) as report:
        tokenizer = load_tokenizer(ModelStore().ensure(target, report))
        report("Reading sources", 0, 0)
        files = source_files(root, (".py",))
        texts = [path.read_text(encoding="utf-8", errors="ignore") for path in files]
        encoded = tokenizer.encode_many([text for text in texts if len(text) > _MIN_CHARS])
        documents = [np.asarray(tokens, dtype=np.int32) for tokens in encoded]
    held_out = documents[::_HELD_OUT]
    kept = [tokens for at, tokens in enumerate(documents) if at % _HELD_OUT]
    figures = measure_index(kept, held_out).as_dict()
    _show({"bench": "index", **figures}, json=json, title="The n-gram index")


def _samples(num_prompts: int, tasks: list[Path], sources: Path | None) -> list[Sample]:
    """An equal share of every task file and of the sources, in turn."""
    share = -(-num_prompts // (len(tasks) + 1))
    groups = [from_tasks(path) for path in tasks]
    spread = [group[:: max(1, len(group) // share)][:share] for group in groups]
    drawn = from_folder(sources or released_sources(), share)
    return list(interleaved(*spread, drawn))[:num_prompts]


def _engine_facts(engine: CompletionEngine) -> dict[str, Any]:
    facts = engine.describe()
    return {name: facts[name] for name in ("target", "device", "dtype", "exactness", "pass_ms")}


def _show(found: dict[str, Any], *, json: bool, title: str) -> None:
    if not json:
        from rich.table import Table  # noqa: PLC0415 - not needed for --json

        table = Table(title=title, title_justify="left", show_header=False)
        for name, value in found.items():
            table.add_row(name, str(value))
        console().print(table)
    write_json(found)
