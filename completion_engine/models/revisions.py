"""Which commit of a hub's repository is used here: resolved once, then kept, so that all files fit together.

Knows one small file for each repository. Must not know the hub.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from completion_engine.runtime import parse_json

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Revisions:
    """`<folder>/<owner>--<name>.json`, one for each repository that was resolved."""

    folder: Path

    def of(self, repository: str) -> str:
        """The commit of that repository that is used here; "" where none was recorded."""
        try:
            revision = parse_json(self._file(repository).read_text(encoding="utf-8"))["revision"]
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        return revision if is_commit(revision) else ""

    def record(self, repository: str, revision: str) -> None:
        """Keep the commit that a repository's name stands for; anything but a commit is left out."""
        if not is_commit(revision) or revision == self.of(repository):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self._file(repository).with_suffix(".new")
        fresh.write_text(json.dumps({"repository": repository, "revision": revision}), encoding="utf-8")
        fresh.replace(self._file(repository))

    def _file(self, repository: str) -> Path:
        return self.folder / f"{repository.replace('/', '--')}.json"


def is_commit(revision: object) -> bool:
    """Whether it is a whole commit's name, which never comes to mean something else."""
    return isinstance(revision, str) and _COMMIT.fullmatch(revision) is not None
