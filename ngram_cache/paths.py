"""Owns what a path is called in a folder. Asks no disk, and takes time in proportion to the two paths.

The library's own `is_relative_to` and `relative_to` take the square of it since Python 3.12.
"""

from __future__ import annotations

from pathlib import PurePath


def name_in(folder: PurePath, path: PurePath) -> PurePath | None:
    """`path` as seen from `folder`, `.` for itself; None where it lies elsewhere."""
    num_parts = len(folder.parts)
    kind = type(path)
    is_below = bool(folder.anchor) == bool(path.anchor) and kind(*path.parts[:num_parts]) == folder
    return kind(*path.parts[num_parts:]) if is_below else None
