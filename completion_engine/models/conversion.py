"""From a GGUF file to a folder of bf16 safetensors, once: run the worker, check its work, then rename.

Owns the atomic appearance of the converted folder. Must not know transformers (the worker does).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completion_engine.errors import DataError, MachineError, SlipstreamError
from completion_engine.models.gguf_worker import STEPS
from completion_engine.models.job import Job, Outcome, run_program
from completion_engine.models.manifest import NEEDED, WEIGHTS, header_damage, write_manifest

_STALL_S = 1800.0  # a slow disk may be silent for minutes while a large model is read
_SHARE = {"weights": 30, "saving": 20, "tokenizer": 45, "checking": 5}  # of the time, in percent; measured
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONUTF8": "1",
}


def convert(
    source: Path, folder: Path, work: Path, facts: Mapping[str, Any], num_bytes: int, job: Job
) -> Path:
    """Convert the GGUF file `source` into `folder`, which must not exist; `work` is an empty folder beside it.

    `facts` about the source go into the manifest; `num_bytes` is the expected size of the weights, for the
    progress report. Raises DataError for a file that cannot be converted, MachineError for lack of memory
    or space. `folder` appears complete or not at all.
    """
    fresh = work / "converted"
    fresh.mkdir()
    what = f"converting {source.name}"

    def measure(stdout: str) -> object:
        written = _size_of(fresh / WEIGHTS)
        job.report(what, _percent(stdout, written / max(num_bytes, 1)), 100)
        return stdout, written

    outcome = run_program(
        _command(source, fresh), _environment(), work, job, measure=measure, stall_s=_STALL_S
    )
    if outcome.exit_code != 0:
        raise _explain(source, outcome)
    _check(source, fresh)
    total = sum(path.stat().st_size for path in fresh.iterdir())
    write_manifest(fresh, facts, lambda done: job.report(f"recording {folder.parent.name}", done, total))
    job.check()
    fresh.replace(folder)
    job.report(what, 100, 100)
    return folder


def _command(source: Path, folder: Path) -> list[str]:
    # -P: modules in the folder the program happens to run in must not be imported.
    return [
        sys.executable, "-P", "-m", "completion_engine.models.gguf_worker", str(source.absolute()), str(folder),
    ]  # fmt: skip


def _environment() -> dict[str, str]:
    ours = str(Path(__file__).resolve().parents[2])
    search = os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH", ""))))
    return os.environ | _QUIET | {"PYTHONPATH": search}


def _messages(stdout: str) -> list[dict[str, str]]:
    # The last line may be half written.
    return [json.loads(line) for line in stdout.splitlines(keepends=True) if line.endswith("\n")]


def _percent(stdout: str, share_saved: float) -> int:
    steps = [message["step"] for message in _messages(stdout) if "step" in message]
    if not steps:
        return 0
    before = sum(_SHARE[step] for step in STEPS[: STEPS.index(steps[-1])])
    return before + int(min(share_saved, 1) * _SHARE["saving"]) if steps[-1] == "saving" else before


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _explain(source: Path, outcome: Outcome) -> SlipstreamError:
    failed = [message for message in _messages(outcome.stdout) if "error" in message]
    if failed and failed[-1]["fault"] == "data":
        return DataError(
            f"{source.name} could not be converted: {failed[-1]['error']}.",
            advice="Only causal language models that transformers knows, in an undamaged GGUF file, can be used.",
        )
    if failed:
        return MachineError(
            f"{source.name} could not be converted: {failed[-1]['error']}.",
            advice="Free some space or memory and try again.",
        )
    if outcome.is_stalled:
        return MachineError(f"Converting {source.name} stood still and was ended.", advice="Try again.")
    if outcome.exit_code < 0:
        return MachineError(
            f"Converting {source.name} was ended by the system (signal {-outcome.exit_code}).",
            advice="Most often the memory is too small: close other programs, or choose a smaller model.",
        )
    lines = outcome.stderr.strip().splitlines() or ["no output"]
    return MachineError(
        f"The program that converts {source.name} failed: {lines[-1][:300]}",
        advice="The installation may be damaged; `slipstream doctor` looks for what is missing.",
    )


def _check(source: Path, folder: Path) -> None:
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    damage = f"{', '.join(missing)} missing" if missing else header_damage(folder / WEIGHTS)
    if damage:
        raise DataError(
            f"{source.name} was converted into something incomplete: {damage}.", advice="Try again."
        )
