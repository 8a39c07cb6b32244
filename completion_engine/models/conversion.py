"""From a GGUF file to a folder of bf16 safetensors, once: run the worker, check its work, then rename.

Owns the atomic appearance of the converted folder. Must not know transformers (the worker does).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion_engine.errors import DataError, MachineError, SlipstreamError
from completion_engine.models.job import Monitor, ProgramOutcome, messages, run_program, worker
from completion_engine.models.manifest import NEEDED, WEIGHTS, header_damage, write_manifest

_STALL_S = 1800.0  # a slow disk may be silent for minutes while a large model is read
_SHARE = {"weights": 70, "saving": 15, "tokenizer": 10, "checking": 5}  # of the time, in percent; measured
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A GGUF file; the facts about it that the manifest records; about how large its bf16 weights will be."""

    file: Path
    facts: Mapping[str, Any]
    num_converted_bytes: int


def convert(source: Source, folder: Path, work: Path, job: Monitor) -> Path:
    """Convert `source` into `folder`, which must not exist; `work` is an empty folder beside it.

    `folder` appears complete or not at all. Raises DataError for a file that cannot be converted,
    MachineError for lack of memory or space.
    """
    fresh = work / "converted"
    fresh.mkdir()
    what = f"converting {source.file.name}"

    def measure(stdout: str) -> object:
        written = _size_of(fresh / WEIGHTS)
        job.report(what, _percent(stdout, written / max(source.num_converted_bytes, 1)), 100)
        return stdout, written

    arguments = (str(source.file.absolute()), str(fresh))
    program = worker("completion_engine.models.gguf_worker", arguments, _QUIET, _STALL_S)
    outcome = run_program(program, work, job, measure)
    if outcome.exit_code != 0:
        raise _explain(source.file, outcome)
    _check(source.file, fresh)
    total = sum(path.stat().st_size for path in fresh.iterdir())
    write_manifest(fresh, source.facts, lambda done: job.report("recording what was converted", done, total))
    job.check()
    fresh.replace(folder)
    job.report(what, 100, 100)
    return folder


def _percent(stdout: str, share_saved: float) -> int:
    steps = [message["step"] for message in messages(stdout) if "step" in message]
    if not steps:
        return 0
    before = sum(_SHARE[step] for step in steps[:-1])
    return before + int(min(share_saved, 1) * _SHARE["saving"]) if steps[-1] == "saving" else before


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _explain(source: Path, outcome: ProgramOutcome) -> SlipstreamError:
    failed = [message for message in messages(outcome.stdout) if "error" in message]
    if failed and failed[-1]["fault"] == "data":
        return DataError(
            f"{source.name} could not be converted: {failed[-1]['error']}.",
            advice="Use an undamaged GGUF file of a causal language model that transformers supports.",
        )
    if failed:
        return MachineError(
            f"{source.name} could not be converted: {failed[-1]['error']}.",
            advice="Free some space or memory and try again.",
        )
    if outcome.is_stalled:
        return MachineError(f"Converting {source.name} made no progress and was ended.", advice="Try again.")
    if outcome.exit_code < 0:
        return MachineError(
            f"Converting {source.name} was ended by the system (signal {-outcome.exit_code}).",
            advice="This usually means too little memory. Close other programs, or choose a smaller model.",
        )
    lines = outcome.stderr.strip().splitlines() or ["no output"]
    return MachineError(
        f"The program that converts {source.name} failed: {lines[-1][:300]}",
        advice="The installation may be damaged. Run `slipstream doctor` for details.",
    )


def _check(source: Path, folder: Path) -> None:
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    damage = f"{', '.join(missing)} missing" if missing else header_damage(folder / WEIGHTS)
    if damage:
        raise DataError(f"{source.name} was converted incompletely: {damage}.", advice="Try again.")
