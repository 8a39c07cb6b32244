"""The model store: which models there are, where they come from, and folders ready to load."""

from completion_engine.models.catalogue import CATALOGUE, ModelSpec, PackageSlice, find_spec
from completion_engine.models.store import ModelStore, StoredModel, Verification

__all__ = [
    "CATALOGUE",
    "ModelSpec",
    "ModelStore",
    "PackageSlice",
    "StoredModel",
    "Verification",
    "find_spec",
]
