"""Models from the Hugging Face cache on this machine, and from the hub when it can be reached.

The only module, besides its worker, that uses huggingface_hub. Takes safetensors and JSON only; never pickled
weights, never a repository's code.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from completion_engine.errors import MachineError, SlipstreamError, UserError
from completion_engine.models.gguf_preparation import weights_damage
from completion_engine.models.job import Monitor, ProgramOutcome, messages, run_program, worker

# No *.bin, *.pt or *.py: pickles and a repository's own code are never fetched.
WANTED = (
    "*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json", "tokenizer*",
    "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PROBE_S = 2.0
_STALL_S = 120.0
_QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def is_repository(name: str) -> bool:
    """Whether `name` has the form owner/name."""
    return _REPOSITORY.fullmatch(name) is not None


def cached_file(repository: str, file_name: str) -> Path | None:
    """A file of a hub repository that already lies in the local cache."""
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - a quarter of a second, seldom needed

    found = try_to_load_from_cache(repository, file_name)
    return Path(found) if isinstance(found, str) else None


def cached_model(repository: str) -> Path | None:
    """The local cache's snapshot of a repository, if everything a model needs is in it."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - as above
    from huggingface_hub.errors import LocalEntryNotFoundError  # noqa: PLC0415 - as above

    try:
        folder = Path(snapshot_download(repository, local_files_only=True, allow_patterns=list(WANTED)))
    except LocalEntryNotFoundError:
        return None
    return None if find_flaw(folder) else folder


def find_flaw(folder: Path) -> str:
    """The reason that a folder is not a model, or "". Reads names, sizes and headers."""
    if not (folder / "config.json").is_file():
        return "config.json is missing"
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        return "tokenizer.json is missing"
    return weights_damage(folder)


def is_reachable() -> bool:
    """Whether the hub answers at all within two seconds; False at once in offline mode."""
    from huggingface_hub import constants  # noqa: PLC0415 - as above

    if constants.HF_HUB_OFFLINE:
        return False
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
    # In a thread, because looking up a name can hang for longer than any timeout that can be given.
    threading.Thread(target=lambda: answers.put(_probe(constants.ENDPOINT)), daemon=True).start()
    try:
        return answers.get(timeout=_PROBE_S)
    except queue.Empty:
        return False


def _probe(endpoint: str) -> bool:
    from huggingface_hub import get_session  # noqa: PLC0415 - as above

    try:
        status = get_session().head(endpoint, timeout=_PROBE_S).status_code
    except Exception:  # any failure, of whatever HTTP library, means "not reachable"
        return False
    return status < 500 and status not in (403, 407)  # those are a proxy's answers


def download_model(repository: str, work: Path, job: Monitor, on_plan: Callable[[int], None]) -> Path:
    """Fetch a repository's safetensors, configuration and tokenizer into the Hugging Face cache.

    An interrupted download is continued next time. `on_plan` gets the remaining bytes before the download,
    and may raise. Raises MachineError, UserError as `download_file` does.
    """
    folder = Path(_run_worker([repository], repository, work, job, on_plan))
    if flaw := find_flaw(folder):
        raise UserError(
            f"{repository} is not a usable model: {flaw}.",
            advice="Choose a repository with safetensors weights and a tokenizer.",
        )
    return folder


def download_file(repository: str, file_name: str, work: Path, job: Monitor) -> Path:
    """Fetch one file of a repository into `work`.

    Raises MachineError when the hub fails, UserError when there is no such repository.
    """
    arguments = [repository, file_name, str(work)]
    return Path(_run_worker(arguments, f"{repository}/{file_name}", work, job, lambda _num_bytes: None))


def _run_worker(
    arguments: list[str], name: str, work: Path, job: Monitor, on_plan: Callable[[int], None]
) -> str:
    is_planned, total = False, 0

    def measure(stdout: str) -> object:
        nonlocal is_planned, total
        message = _last(stdout)
        if not is_planned and "total" in message:
            is_planned, total = True, int(message["total"])
            on_plan(total)
        done = int(message.get("done", 0))
        job.report(f"downloading {name}", min(done, total), total)
        return done, total

    program = worker("completion_engine.models.hub_worker", arguments, _QUIET, _STALL_S)
    outcome = run_program(program, work, job, measure)
    message = _last(outcome.stdout)
    if outcome.exit_code != 0 or "path" not in message:
        raise _explain(name, outcome, message)
    return str(message["path"])


def _last(stdout: str) -> dict[str, Any]:
    return (messages(stdout) or [{}])[-1]


def _explain(name: str, outcome: ProgramOutcome, message: dict[str, Any]) -> SlipstreamError:
    reason = str(message.get("error", outcome.stderr.strip()[-200:] or "it was ended"))
    if message.get("is_unknown"):
        return UserError(
            f"The Hugging Face hub has no model {name} that you may read.",
            advice="Check the spelling; for a gated model log in with `hf auth login` first.",
        )
    if "No space left" in reason:
        return MachineError(f"The disk is full: {name} could not be stored.", advice="Free some space.")
    return MachineError(
        f"{name} could not be downloaded from the Hugging Face hub: {reason}.",
        advice="Check the network and try again. Slipstream keeps the downloaded parts.",
    )
