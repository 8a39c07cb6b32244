"""`slipstream doctor`: what there is, what is slow or missing, and what to do about it.

Judges facts that others gather. Must not change anything on the machine.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from completion_engine.config import AUTO
from lsp_server.commands.check import Check, guarded
from lsp_server.commands.local_engine import automatic_choice, load_engine, settings_for, with_target
from lsp_server.commands.machine import (
    BF16_FEATURES,
    Machine,
    num_free_disk_bytes,
    num_free_gpu_bytes,
    read_machine,
    version_of,
)
from lsp_server.commands.servers import server_checks
from lsp_server.commands.source_file import repository_of
from lsp_server.commands.terminal import console, progress_bar, write_json
from lsp_server.sharing.host_connection import running_hosts

if TYPE_CHECKING:
    from completion_engine.engine import CompletionEngine
    from completion_engine.request import Progress
    from lsp_server.workspace.settings import Settings

COLOURS = {"ok": "green", "slow": "yellow", "missing": "red"}

SLOW_PASS_MS = 100.0
SLOW_LOAD_ADVICE = "The first load compiles for this processor. A faster disk or more memory may help."
MIN_CORES = 4
# The default target with its cache and the index of a large repository.
MIN_MEMORY_BYTES = 4_000_000_000
MIN_DISK_BYTES = 3_000_000_000


def doctor(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object only.")] = False
) -> None:
    """Say what is missing or slow here, and what to do about it."""
    with progress_bar(quiet=as_json) as report:
        checks = examine(Path.cwd(), report)
    worst = max((check.state for check in checks), key=list(COLOURS).index)
    if as_json:
        write_json({"state": worst, "checks": [asdict(check) for check in checks]})
    else:
        show(checks)
    if worst == "missing":
        raise typer.Exit(1)


def examine(folder: Path, report: Progress) -> list[Check]:
    """All checks, for work in `folder`."""
    root = repository_of(folder)
    report("Looking at the machine", 0, 0)
    checks = [
        *guarded("libraries", version_checks),
        *guarded("machine", lambda: machine_checks(read_machine())),
        *guarded("gpu", lambda: gpu_checks(num_free_gpu_bytes(), has_triton=bool(version_of("triton")))),
        *guarded("compiled kernels", lambda: [kernels_check()]),
    ]
    return [*checks, *guarded("settings", lambda: settings_checks(root, report))]


def settings_checks(root: Path, report: Progress) -> Iterator[Check]:
    """All that follows from the settings for work in `root`, and what is wrong with them."""
    merged = settings_for(root)
    yield from guarded("model", lambda: model_checks(merged.settings, root, report))
    yield from guarded("servers", lambda: server_checks(merged.settings, report))
    yield from guarded("shared by windows", lambda: sharing_checks(running_hosts(os.environ)))
    yield from (Check("settings", "slow", problem, "Correct or remove it.") for problem in merged.problems)
    if not merged.problems:
        yield Check("settings", "ok", "no problems")


def version_checks() -> Iterator[Check]:
    """Python and the libraries that do the work."""
    yield Check("python", "ok", sys.version.split()[0])
    for package in ("torch", "transformers", "pygls"):
        yield from guarded(package, partial(_library_checks, package))


def _library_checks(package: str) -> Iterator[Check]:
    if version := version_of(package):
        import_module(package)  # what is installed need not load
        yield Check(package, "ok", version)
    else:
        yield Check(package, "missing", "not installed", "Install it.")


def machine_checks(machine: Machine) -> list[Check]:
    """Is this machine quick enough to be of use?"""
    has_gpu = bool(machine.gpu)
    has_bf16 = any(feature in machine.features for feature in BF16_FEATURES)
    has_cores = has_gpu or machine.num_cores >= MIN_CORES
    has_memory = not machine.num_memory_bytes or machine.num_free_memory_bytes >= MIN_MEMORY_BYTES
    memory = f"{machine.num_free_memory_bytes / 1e9:.1f} of {machine.num_memory_bytes / 1e9:.1f} GB free"
    return [
        _check("processor", machine.processor, is_ok=True),
        _check(
            "bf16 in hardware",
            ", ".join(machine.features) or "unknown features",
            is_ok=has_gpu or has_bf16,
            advice="This processor has no bf16 arithmetic: expect several times the time per token.",
        ),
        _check("cores", str(machine.num_cores), is_ok=has_cores, advice="More cores make it quicker."),
        _check(
            "memory", memory, is_ok=has_memory, advice="Close other programs, or choose a smaller target."
        ),
        _check("gpu", machine.gpu or "none", is_ok=has_gpu, advice="A CUDA GPU makes it many times quicker."),
    ]


def sharing_checks(hosts: Iterable[dict[str, Any]]) -> list[Check]:
    """Which processes serve editor windows together, and what each holds."""
    checks = []
    for host in hosts:
        engines = ", ".join(map(_engine_said, host["engines"]))
        num_windows, gigabytes = host["num_windows"], host["num_memory_bytes"] / 1e9
        windows = "1 window" if num_windows == 1 else f"{num_windows} windows"
        found = f"process {host['pid']}: {windows}, {gigabytes:.1f} GB, {engines or 'no engine'}"
        checks.append(Check("shared by windows", "ok", found))
    return checks or [Check("shared by windows", "ok", "no process runs")]


def _engine_said(engine: dict[str, Any]) -> str:
    is_auto = engine["setting"] == AUTO != engine["target"]
    return f"{'auto: ' if is_auto else ''}{engine['target']} ({engine['state']})"


def gpu_checks(free_bytes: int, *, has_triton: bool) -> list[Check]:
    """What fits on a GPU with `free_bytes`, and whether our kernels can run there; nothing without one."""
    if not free_bytes:
        return []
    from completion_engine.gpu.memory import largest_fitting  # noqa: PLC0415 - loads torch

    names = {16: "bfloat16", 8: "int8", 4: "int4"}
    fitting = ", ".join(f"{size} in {names[bits]}" for bits, size in largest_fitting(free_bytes).items())
    return [
        _check(
            "largest target on the gpu",
            f"{fitting or 'none'} ({free_bytes / 1e9:.1f} GB free)",
            is_ok=bool(fitting),
            advice="Free GPU memory, or set device to cpu.",
        ),
        _check(
            "gpu kernels",
            "triton" if has_triton else "plain torch",
            is_ok=has_triton,
            advice="Install triton: targets then run on kernels of our own.",
        ),
    ]


def kernels_check() -> Check:
    """Can what is compiled for the processor be stored where nobody else can change it?"""
    from completion_engine.cpu.kernels import kernel_cache  # noqa: PLC0415 - not needed for help

    if problem := kernel_cache.storage_problem():
        return Check("compiled kernels", "slow", f"not stored: {problem.found}", problem.advice)
    return Check("compiled kernels", "ok", f"stored in {kernel_cache.KERNEL_FOLDER}")


def model_checks(settings: Settings, root: Path, report: Progress) -> Iterator[Check]:
    """Is the target there, how quick is it, and is there an index of `root` in its tokens?"""
    from completion_engine.models import ModelStore  # noqa: PLC0415 - not needed for help

    store = ModelStore()
    free = num_free_disk_bytes(store.root)
    yield _check(
        "disk for models",
        f"{free / 1e9:.1f} GB free at {store.root}",
        is_ok=free >= MIN_DISK_BYTES,
        advice="Free some space, or set SLIPSTREAM_MODEL_DIR.",
    )
    named = with_target(settings)
    known = {model.spec.id: model.is_ready for model in store.list()}
    if is_there := known.get(named.target, True):
        checks = guarded("model", lambda: speed_checks(named, root, report))
    else:
        pull = f"Run: slipstream models pull {named.target}"
        checks = [Check("model", "missing", f"{named.target} is not in the store", pull)]
    yield from guarded("target", lambda: target_checks(settings, named.target if is_there else ""))
    yield from checks


def target_checks(settings: Settings, loaded: str) -> list[Check]:
    """Which model suggestions come from, why, and what the next one up would cost; `loaded` is in memory."""
    if settings.target != AUTO:
        return [Check("target", "ok", f"{settings.target}, by the settings")]
    choice = automatic_choice(settings, loaded)
    meanwhile = "" if choice.target == choice.start else f"; {choice.start} until an editor has moved to it"
    checks = [Check("target", "ok", f"auto: {choice.reason}{meanwhile}")]
    return [*checks, Check("next larger target", "ok", choice.next_said)] if choice.next_up else checks


def speed_checks(settings: Settings, root: Path, report: Progress) -> list[Check]:
    """Load the target and read off what it measured of itself."""
    start = time.perf_counter()
    loaded = load_engine(settings, report)
    load_s = time.perf_counter() - start
    engine = loaded.describe()
    gigabytes = engine["num_weight_bytes"] / 1e9
    model = f"{engine['target']}: {gigabytes:.2f} GB on {engine['device']} in {engine['dtype']}"
    return [
        Check("model", "ok", model),
        _check("loading", f"{load_s:.1f} s", is_ok=load_s < 30, advice=SLOW_LOAD_ADVICE),
        *_pass_checks(engine["pass_ms"]),
        *energy_checks(loaded),
        _drafters_check(engine),
        index_check(root, loaded.tokenizer.fingerprint),
    ]


def energy_checks(engine: CompletionEngine) -> list[Check]:
    """What a token costs, where the machine counts energy: measured on one completion."""
    from completion_engine.request import CompletionRequest  # noqa: PLC0415 - not needed for help

    if engine.energy.counts:
        engine.complete(CompletionRequest("def mean(values):\n    ", "\n", "python", deadline_ms=0))
    energy = engine.describe().get("energy")
    if energy is None:
        return []
    return [Check("energy", "ok", f"{energy['joules_per_token']:.2f} J a token ({energy['source']})")]


def index_check(root: Path, fingerprint: str) -> Check:
    """Is the repository indexed already?"""
    from lsp_server.commands.repository import num_saved_bytes  # noqa: PLC0415 - loads numpy

    num_bytes = num_saved_bytes(root, fingerprint)
    if not num_bytes:
        advice = f"An editor builds it by itself; or run: slipstream index {root}"
        return Check("index", "slow", f"{root} has none yet", advice)
    return Check("index", "ok", f"{num_bytes / 1e6:.1f} MB for {root}")


def _drafters_check(engine: dict[str, Any]) -> Check:
    names = ", ".join(engine["drafters"]) or "none: plain decoding"
    num_bytes = engine["num_drafter_bytes"]
    return Check("drafters", "ok", f"{names} ({num_bytes / 1e6:.0f} MB)" if num_bytes else names)


def _pass_checks(pass_ms: dict[str, float]) -> list[Check]:
    return [
        _check(
            f"target pass, width {width}",
            f"{ms:.1f} ms",
            is_ok=ms <= SLOW_PASS_MS,
            advice="Close what else keeps the machine busy. A smaller target, more cores or a GPU help.",
        )
        for width, ms in pass_ms.items()
    ]


def _check(name: str, found: str, *, is_ok: bool, advice: str = "") -> Check:
    return Check(name, "ok" if is_ok else "slow", found, "" if is_ok else advice)


def show(checks: list[Check]) -> None:
    """The table for people, on stdout."""
    from rich.markup import escape  # noqa: PLC0415 - not needed for help
    from rich.table import Table  # noqa: PLC0415 - as above

    table = Table(title="slipstream doctor", title_justify="left")
    for column in ("what", "state", "found", "what to do"):
        table.add_column(column, overflow="fold")
    for check in checks:
        state = f"[{COLOURS[check.state]}]{check.state}[/]"
        row: list[Any] = [check.name, state, escape(check.found), escape(check.advice)]
        table.add_row(*row)
    console().print(table)
