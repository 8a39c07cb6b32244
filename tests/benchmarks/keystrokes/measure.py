"""Every program on every file, file by file in turn: the composition of this package."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from completion_engine.errors import UserError
from completion_engine.request import Progress
from lsp_server.commands.local_engine import read_source
from lsp_server.commands.machine_checks import processor
from lsp_server.commands.player import Player, running_server, wait_until_ready
from lsp_server.commands.replay import START_SHARE
from lsp_server.scripted_typing.typing_plan import TypingPlan, plan_stretch
from lsp_server.scripted_typing.typist import TYPISTS, TypistName
from tests.benchmarks.keystrokes import in_neovim
from tests.benchmarks.keystrokes.file_run import FileRun, Watcher, type_with_llama_vim
from tests.benchmarks.keystrokes.llama_server import (
    AVX2_PROGRAM,
    PART,
    PEERS,
    PROGRAM,
    LlamaServer,
    running_llama_server,
)
from tests.benchmarks.keystrokes.vim_client import LlamaVim
from tests.benchmarks.passes_by_instruction_set import forced
from tests.benchmarks.peers.llama import gguf_of
from tests.benchmarks.released_sources import MODULES, released_sources
from tests.parts import ROOT, MissingError

SLIPSTREAM, LLAMA_VIM, LLAMA_VIM_LINE = "Slipstream", "llama.vim", "llama.vim, single line"
SYSTEMS = (SLIPSTREAM, LLAMA_VIM, LLAMA_VIM_LINE)
OVER_HTTP = "llama.vim with Slipstream"  # the same plugin; `slipstream serve --http` in place of llama-server
IN_NEOVIM = {f"{name} in Neovim": name for name in (*SYSTEMS, OVER_HTTP)}
SAMPLE = ROOT / "docs" / "sample_repository"
SAMPLE_FILES = ("lending/loans.py", "lending/members.py")
STOPS: Mapping[str, Sequence[str]] = {LLAMA_VIM: [], OVER_HTTP: [], LLAMA_VIM_LINE: ["\n"]}
NUM_VISITED = 4  # other files that the user of llama.vim has looked at


@dataclass(frozen=True, slots=True)
class KeystrokeOptions:
    """What is typed and with what. About `num_keystrokes` for each system; `pace_ms` between two of them."""

    target: str
    systems: Sequence[str] = SYSTEMS
    num_keystrokes: int = 500
    pace_ms: float = 220.0
    seed: int = 0
    instruction_set: str | None = None
    typist: TypistName = "eager"


@dataclass(frozen=True, slots=True)
class TypedFile:
    """A file of a repository and the stretch of it that is typed."""

    root: Path
    name: str
    plan: TypingPlan

    @property
    def label(self) -> str:
        """The file's name in results."""
        return f"{self.root.name}/{self.name}"


def typed_files(options: KeystrokeOptions) -> list[TypedFile]:
    """Two files of the sample and the modules of releases; raises as `released_sources`."""
    places = [(SAMPLE, name) for name in SAMPLE_FILES]
    released = released_sources()
    places += [(released / Path(name).parts[0], str(Path(*Path(name).parts[1:]))) for name in MODULES]
    return [_typed_file(root, name, options, len(places)) for root, name in places]


def _typed_file(root: Path, name: str, options: KeystrokeOptions, num_files: int) -> TypedFile:
    text = read_source(root / name).replace("\r\n", "\n")
    line = int(text.count("\n") * START_SHARE)
    plan = plan_stretch(text, line, options.num_keystrokes // num_files, options.seed)
    if plan is None:
        raise UserError(f"There is nothing to type in {root / name}.")
    return TypedFile(root, name, plan)


def measure(
    files: Sequence[TypedFile], options: KeystrokeOptions, report: Progress, keep: Callable[[FileRun], None]
) -> dict[str, Any]:
    """Type all files with all systems and hand each run to `keep`; returns the facts of the machine.

    Raises UserError where llama-server is wanted and is not set up, and SlipstreamError when one fails.
    """
    load_before = round(os.getloadavg()[0], 2)
    with _llama_server(options) as server:
        turns = [
            (file, options.systems[(number + at) % len(options.systems)], typist)
            for at, file in enumerate(files)
            for number in range(len(options.systems))
            for typist in TYPISTS
        ]
        for done, (file, system, typist) in enumerate(turns):
            report("Typing", done, len(turns))
            found = asyncio.run(_run(file, system, replace(options, typist=typist), server))
            keep(replace(found, typist=typist))
        version = server.version if server else None
    return {
        "bench": "keystrokes",
        "target": options.target,
        "pace_ms": options.pace_ms,
        "num_keystrokes": options.num_keystrokes,
        "seed": options.seed,
        "processor": processor(),
        "num_cores": os.cpu_count(),
        "instruction_set": options.instruction_set or "all",
        "load_before": load_before,
        "llama_server": version,
    }


@contextmanager
def _llama_server(options: KeystrokeOptions) -> Iterator[LlamaServer | None]:
    if all(IN_NEOVIM.get(system, system) in {SLIPSTREAM, OVER_HTTP} for system in options.systems):
        yield None
        return
    model = gguf_of(options.target)
    if isinstance(model, str):
        raise UserError(model, advice="Name a model of `slipstream models`, downloaded.")
    try:
        program = PEERS.find(PART, AVX2_PROGRAM if options.instruction_set else PROGRAM)
    except MissingError as error:
        raise UserError(str(error), advice=f"Run make {PEERS.command}, or name --system.") from error
    with running_llama_server(program, model) as server:
        yield server


async def _run(
    file: TypedFile, system: str, options: KeystrokeOptions, server: LlamaServer | None
) -> FileRun:
    if system in IN_NEOVIM:
        return await type_in_neovim(file, system, options, server)
    if system == SLIPSTREAM or server is None:
        return await type_with_slipstream(file, {"target": options.target}, options)
    stop = STOPS[system]
    client = LlamaVim(server.infill, file.name, stop=stop, seed=options.seed)
    for path in visited_files(file):
        await client.visit(read_source(path).split("\n"), 0, str(path.relative_to(file.root)))
    rest = (file.plan.text[: file.plan.start] + file.plan.text[file.plan.end :]).split("\n")
    await client.visit(rest, file.plan.text.count("\n", 0, file.plan.start), file.name)
    watcher = Watcher()
    answers = await type_with_llama_vim(client, file.plan, options.pace_ms, watcher, options.typist)
    return watcher.run_of(system, file.label, file.plan, answers)


def visited_files(file: TypedFile) -> list[Path]:
    """The files beside the typed one that are visited first, in the order of their names."""
    path = file.root / file.name
    others = (other for other in sorted(path.parent.glob(f"*{path.suffix}")) if other != path)
    return [other for other in others if other.stat().st_size > 200][:NUM_VISITED]


async def type_in_neovim(
    file: TypedFile, system: str, options: KeystrokeOptions, server: LlamaServer | None
) -> FileRun:
    """Type a file in a real Neovim with the program's plugin."""
    name, env = IN_NEOVIM[system], forced(options.instruction_set)
    with ExitStack() as stack:
        place = stack.enter_context(in_neovim.copy_without(file.root, file.name, file.plan))
        if name == OVER_HTTP:
            url = stack.enter_context(in_neovim.http_address(place, file.name, options.target, env))
        else:
            url = server.infill_url if server is not None else ""
        init = in_neovim.slipstream_init(options.target)
        if name != SLIPSTREAM:
            init = in_neovim.llama_vim_init(url, STOPS[name])
        editor = stack.enter_context(in_neovim.editor_of(init, place, file.name, file.plan, env))
        visited = [path.relative_to(file.root) for path in visited_files(file)]
        editor.open_files(visited, waits=name == SLIPSTREAM)
        if name not in {SLIPSTREAM, OVER_HTTP} and server is not None:
            await asyncio.to_thread(server.wait_idle)
        watcher = Watcher()
        answers = await editor.type(options.pace_ms, watcher, options.typist)
    return watcher.run_of(system, file.label, file.plan, answers)


async def type_with_slipstream(
    file: TypedFile, settings: Mapping[str, Any], options: KeystrokeOptions
) -> FileRun:
    """Type a file through a server of its own; the index leaves it out, as a replay's."""
    path = file.root / file.name
    with tempfile.TemporaryDirectory(prefix="slipstream-keystrokes-") as index_dir:
        env = {"SLIPSTREAM_INDEX_DIR": index_dir, **forced(options.instruction_set)}
        chosen = {**settings, "index": {"exclude": [f"/{file.name}"]}}
        async with running_server(file.root, settings=chosen, env=env) as client:
            await wait_until_ready(client)
            watcher = Watcher()
            pace_ms, typist = options.pace_ms, options.typist
            player = Player(client, path, file.plan, pace_ms=pace_ms, watch=watcher.watch, typist=typist)
            answers = await player.play()
    return watcher.run_of(SLIPSTREAM, file.label, file.plan, answers)
