"""A file of JSON objects, one a line; a long measurement appends to it and resumes from it.

Owns the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completion_engine.errors import UserError


class JsonLines:
    """The objects of a file, and of all that are added; without a path they are kept in memory alone."""

    def __init__(self, path: Path | None = None) -> None:
        """Raises UserError where the file holds something else."""
        self._path = path
        text = path.read_text(encoding="utf-8") if path is not None and path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a line without its end was cut off: it is measured again
        try:
            self.objects: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise UserError(f"{path} holds no results: {error}.", advice="Name another file.") from error
        if path is not None and whole != text:
            path.write_text(whole, encoding="utf-8")

    def add(self, value: Mapping[str, Any]) -> None:
        """Keep one object, in the file too."""
        self.objects.append(dict(value))
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(value, ensure_ascii=True) + "\n")
