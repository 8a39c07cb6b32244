"""A fingerprint of the rules by which a folder is indexed. An index saved under another one is not used."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.abc import ResourceLoader
from importlib.util import find_spec

# The modules that decide which files are read.
OF_FILES = (
    "file_names",
    "folder_rules",
    "git_places",
    "glob",
    "ignore",
    "repository",
    "walk",
)
# The modules that decide what is removed from a file's text.
OF_TEXT = (
    "redaction.__init__",
    "redaction.forms",
    "redaction.names",
    "redaction.rule",
    "redaction.values",
)


@cache
def rules_fingerprint() -> str:
    """Return the fingerprint of all rules."""
    return digest_of(*OF_FILES, *OF_TEXT)


def digest_of(*modules: str) -> str:
    """Return a hash of the files, source or compiled, of these modules of this package."""
    digest = hashlib.sha256()
    for name in modules:
        spec = find_spec(f"{__package__}.{name}")
        if spec is None or spec.origin is None or not isinstance(spec.loader, ResourceLoader):
            raise ImportError(f"{name} has no file that could be read")
        data = spec.loader.get_data(spec.origin)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
