"""Which of the names that a user gives a model are paths. Must not ask the disk.

What lies in the working folder comes from whoever wrote the repository there: it never decides what a name
means. So a path looks like one, and every other name is an id.
"""

from __future__ import annotations

from pathlib import Path

from completion_engine.errors import UserError


def path_of(name: str) -> Path | None:
    """The absolute path that `name` is: it begins with `/`, `~` or `.`, or with a drive. None of an id.

    Raises UserError where `~` means nobody.
    """
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise UserError(f"{name} names a user that does not exist.", advice="Check the path.") from error
    return path.absolute() if path.is_absolute() or name.startswith(".") else None
