"""The folders of the real editors that `make editors` set up."""

from __future__ import annotations

from tests.parts import ROOT, MissingError, Parts

FOLDER = ROOT / ".editors"
find = Parts(FOLDER, "editors").find

__all__ = ["FOLDER", "ROOT", "MissingError", "find"]
