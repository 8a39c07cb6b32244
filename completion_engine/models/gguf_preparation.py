"""Prepares a model folder for a GGUF file, once: runs the worker, checks its result, then renames the folder.

The weights stay in the GGUF file (see `gguf_worker`). The folder appears complete or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion_engine.errors import DataError, MachineError, SlipstreamError
from completion_engine.models.job import Monitor, ProgramOutcome, messages, run_program, worker
from completion_engine.models.manifest import missing_from, write_manifest

_STALL_S = 600.0  # a slow disk may take minutes for a large header
_SHARE = {"reading": 50, "tokenizer": 35, "checking": 15}  # share of the time, in percent; measured
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A GGUF file, and the facts about it that the manifest records."""

    file: Path
    facts: Mapping[str, Any]


def prepare(source: Source, folder: Path, work: Path, job: Monitor) -> Path:
    """Prepare `folder`, which must not exist, for `source`; `work` is an empty folder beside it.

    Raises DataError for a file that cannot be used, MachineError for lack of memory or space.
    """
    fresh = work / "prepared"
    fresh.mkdir()
    what = f"preparing {source.file.name}"

    def measure(stdout: str) -> object:
        job.report(what, _percent(stdout), 100)
        return stdout

    beside = ("beside",) if source.file.parent == folder.parent else ()
    arguments = (str(source.file.absolute()), str(fresh), *beside)
    program = worker("completion_engine.models.gguf_worker", arguments, _QUIET, _STALL_S)
    outcome = run_program(program, work, job, measure)
    if outcome.exit_code != 0:
        raise _explain(source.file, outcome)
    _check(source.file, fresh)
    write_manifest(fresh, source.facts)
    job.check()
    fresh.replace(folder)
    job.report(what, 100, 100)
    return folder


def _percent(stdout: str) -> int:
    steps = [message["step"] for message in messages(stdout) if "step" in message]
    return sum(_SHARE.get(step, 0) for step in steps[:-1])


def _explain(source: Path, outcome: ProgramOutcome) -> SlipstreamError:
    failed = [message for message in messages(outcome.stdout) if "error" in message]
    if failed and failed[-1]["fault"] == "data":
        return DataError(
            f"{source.name} cannot be used: {failed[-1]['error']}.",
            advice="Use an undamaged GGUF file of a causal language model that transformers supports.",
        )
    if failed:
        return MachineError(
            f"{source.name} could not be read: {failed[-1]['error']}.",
            advice="Free some space or memory and try again.",
        )
    if outcome.is_stalled:
        return MachineError(f"Reading {source.name} made no progress and was ended.", advice="Try again.")
    if outcome.exit_code < 0:
        return MachineError(
            f"Reading {source.name} was ended by the system (signal {-outcome.exit_code}).",
            advice="This usually means too little memory. Close other programs, or choose a smaller model.",
        )
    lines = outcome.stderr.strip().splitlines() or ["no output"]
    return MachineError(
        f"The program that reads {source.name} failed: {lines[-1][:300]}",
        advice="The installation may be damaged. Run `slipstream doctor` for details.",
    )


def _check(source: Path, folder: Path) -> None:
    if missing := missing_from([path.name for path in folder.iterdir()]):
        raise DataError(
            f"The files prepared for {source.name} are incomplete: {missing} is missing.",
            advice="Try again.",
        )
