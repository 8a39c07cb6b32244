"""Owns a name for what some modules say, which changes as soon as one of them does."""

from __future__ import annotations

import hashlib
from importlib.abc import ResourceLoader
from importlib.util import find_spec


def digest_of(*modules: str) -> str:
    """A hash of the files of these modules of this package, source or compiled."""
    digest = hashlib.sha256()
    for name in modules:
        spec = find_spec(f"{__package__}.{name}")
        if spec is None or spec.origin is None or not isinstance(spec.loader, ResourceLoader):
            raise ImportError(f"{name} has no file that could be read")
        data = spec.loader.get_data(spec.origin)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
