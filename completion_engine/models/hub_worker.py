"""The program that downloads from the Hugging Face hub; started as a child by `hub`.

    python -m completion_engine.models.hub_worker OWNER/NAME [FILE FOLDER]

A process of its own, so that it can be ended at any moment. Writes one JSON object a line to stdout:
{"total": bytes to come, "done": bytes arrived}, at the end {"path": ...} or {"error": text, "is_unknown":
whether the hub denies that there is such a model}.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TextIO

from completion_engine.models.hub import WANTED
from completion_engine.models.job import one_line, say
from completion_engine.models.storage import size_of

_TICK_S = 0.5


def main() -> int:
    """Download what the arguments name. Returns the exit code."""
    out, sys.stdout = sys.stdout, sys.stderr  # nothing that a library prints may mix with our lines
    try:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415 - slow

        model, *file = sys.argv[1:4]
        path = hf_hub_download(model, file[0], local_dir=file[1]) if file else _fetch_model(model, out)
    except Exception as error:  # an error of any HTTP library; its text is passed on
        say(out, error=one_line(error), is_unknown=_is_unknown(error))
        return 1
    say(out, path=path)
    return 0


def _fetch_model(repository: str, out: TextIO) -> str:
    from huggingface_hub import constants, snapshot_download  # noqa: PLC0415 - slow

    plan = snapshot_download(repository, allow_patterns=list(WANTED), dry_run=True)
    total = sum(file.file_size or 0 for file in plan if file.will_download)
    blobs = Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}" / "blobs"
    before = size_of(blobs)
    finished = threading.Event()

    def tick() -> None:
        while not finished.wait(_TICK_S):
            say(out, total=total, done=size_of(blobs) - before)

    say(out, total=total, done=0)
    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        return str(snapshot_download(repository, allow_patterns=list(WANTED)))
    finally:
        finished.set()
        ticker.join()


def _is_unknown(error: BaseException | None) -> bool:
    """Whether the hub itself denied the model, perhaps as the cause of a more general error."""
    from huggingface_hub.errors import RemoteEntryNotFoundError, RepositoryNotFoundError  # noqa: PLC0415 - slow

    while error is not None:
        if isinstance(error, (RemoteEntryNotFoundError, RepositoryNotFoundError)):
            return True
        error = error.__cause__ or error.__context__
    return False


if __name__ == "__main__":
    sys.exit(main())
