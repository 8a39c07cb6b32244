"""A header is read as the format's own library reads it, and no further than the file goes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest

from completion_engine.models import gguf_worker
from completion_engine.models.gguf_layout import (
    BLOCK_SIZES,
    GgufLayout,
    TensorLayout,
    folder_name,
    read_layout,
    write_layout,
)
from completion_engine.models.gguf_worker import read_header

MANY = 1 << 60


def test_a_header_says_what_the_library_reads(tiny_gguf: Path) -> None:
    found, wanted = read_header(tiny_gguf), gguf.GGUFReader(tiny_gguf)
    internal = {name for name in wanted.fields if name.startswith("GGUF.")}
    assert found.fields.keys() == wanted.fields.keys() - internal
    for name, field in found.fields.items():
        values = [value.decode() if isinstance(value, bytes) else value for value in field.values()]
        told = wanted.fields[name].contents()
        assert values == (told if isinstance(told, list) else [told])
    tensors = [
        (tensor.name, tuple(tensor.shape), int(tensor.tensor_type), int(tensor.data_offset))
        for tensor in wanted.tensors
    ]
    assert [tuple(entry) for entry in found.tensors] == tensors


def header(*, num_tensors: int = 0, num_fields: int = 0, version: int = 3) -> bytes:
    return struct.pack("<4sIQQ", b"GGUF", version, num_tensors, num_fields)


def field(kind: int, value: bytes = b"", name: bytes = b"k") -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value


def list_of(kind: int, length: int) -> bytes:
    return header(num_fields=1) + field(9, struct.pack("<IQ", kind, length))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GGUF", "ends too early"),
        (header(version=1), "not a GGUF file of version"),
        (header(version=3 << 24), "not a GGUF file of version"),
        (header(num_fields=MANY), "ends too early"),
        (header(num_tensors=MANY), "ends too early"),
        (list_of(0, MANY), "ends too early"),
        (list_of(8, MANY), "ends too early"),
        (list_of(9, 0) + bytes(8), "unknown type 9"),
        (header(num_fields=1) + field(8, struct.pack("<Q", MANY)), "ends too early"),
        (header(num_fields=1) + field(99) + b"x", "unknown type 99"),
        (header(num_fields=1) + field(4, struct.pack("<I", 0), b"general.alignment"), None),
        (header(num_fields=1) + field(4, struct.pack("<I", 1 << 31), b"general.alignment"), "alignment"),
        (header(num_fields=1) + field(8, struct.pack("<Q", 0), b"general.alignment"), None),
        (header(num_tensors=1) + struct.pack("<QI", 0, 1 << 30), "dimensions"),
        (header(num_tensors=1) + struct.pack("<QI", 0, 2), "ends too early"),
    ],
)
def test_a_header_that_promises_more_than_the_file_holds_is_read_no_further(
    tmp_path: Path, data: bytes, reason: str | None
) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    if reason is None:
        read_header(path)
    else:
        with pytest.raises(ValueError, match=reason):
            read_header(path)


def test_a_header_of_too_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_worker, "MAX_VALUES", 100)
    path = tmp_path / "x.gguf"
    path.write_bytes(list_of(0, 100) + bytes(300))
    with pytest.raises(ValueError, match="more than 100 values"):
        read_header(path)
    path.write_bytes(list_of(0, 99) + bytes(300))
    assert len(read_header(path).fields["k"].values()) == 99


def test_sizes_of_blocks_are_the_librarys() -> None:
    for name, sizes in BLOCK_SIZES.items():
        assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]] == sizes


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("output_norm.weight", "model.norm.weight"),
        ("output.weight", "lm_head.weight"),
        ("blk.12.attn_q.bias", "model.layers.12.self_attn.q_proj.bias"),
        ("blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight"),
        ("blk.0.ffn_gate_exps.weight", ""),
        ("rope_freqs.weight", ""),
        ("blk.0.token_embd.weight", ""),
        ("attn_q.weight", ""),
        ("blk.99999.attn_q.weight", ""),
    ],
)
def test_tensors_get_the_names_of_a_model_folder(name: str, wanted: str) -> None:
    assert folder_name(name) == wanted


SOUND = TensorLayout("Q8_0", (4, 64), 32)


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (SOUND, ""),
        (TensorLayout("Q8_0", (4, 64), 33), "outside"),
        (TensorLayout("Q8_0", (4, 64), -1), "outside"),
        (TensorLayout("Q8_0", (4, 63), 0), "whole Q8_0 blocks"),
        (TensorLayout("Q9_9", (4, 64), 0), "Q9_9 cannot be read"),
        (TensorLayout("F32", (), 0), "shape"),
        (TensorLayout("F32", (1, 1, 1), 0), "shape"),
        (TensorLayout("F32", (0, 4), 0), "shape"),
        (TensorLayout("F32", (-1, 4), 0), "shape"),
        (TensorLayout("F32", (1 << 24, 4), 0), "shape"),
        (TensorLayout("F32", (6, 4), 0, 2), "heads"),
        (TensorLayout("F32", (8, 4), 0, 2), ""),
        (TensorLayout("F32", (8, 4), 0, -2), "heads"),
    ],
)
def test_a_tensor_that_cannot_lie_in_the_file_is_refused(
    tmp_path: Path, tensor: TensorLayout, reason: str
) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(bytes(32 + 4 * 68))
    flaw = GgufLayout(file, 32 + 4 * 68, {"x": tensor}).flaw()
    assert reason in flaw
    assert bool(reason) == bool(flaw)


@pytest.mark.parametrize(("offset", "reason"), [(32 + 4 * 68, ""), (31 + 4 * 68, "overlap"), (32, "overlap")])
def test_tensors_that_share_bytes_are_refused(tmp_path: Path, offset: int, reason: str) -> None:
    """A small file could otherwise name any number of large weights."""
    file = tmp_path / "x.gguf"
    file.write_bytes(bytes(32 + 8 * 68))
    second = TensorLayout("Q8_0", (4, 64), offset)
    for tensors in ({"x": SOUND, "y": second}, {"x": second, "y": SOUND}):
        flaw = GgufLayout(file, 32 + 8 * 68, tensors).flaw()
        assert reason in flaw
        assert bool(reason) == bool(flaw)


def lose(file: Path) -> None:
    file.unlink()


def shorten(file: Path) -> None:
    file.write_bytes(bytes(10))


def replace_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("spoil", [lose, shorten, replace_by_a_folder])
def test_a_layout_is_of_one_file(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(bytes(32 + 4 * 68))
    layout = GgufLayout(file, 32 + 4 * 68, {"x": SOUND})
    assert layout.flaw() == ""
    spoil(file)
    assert layout.flaw()


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_layout_is_read_as_it_was_written(tmp_path: Path, *, is_beside: bool) -> None:
    folder = tmp_path / "prepared"
    folder.mkdir()
    layout = GgufLayout(tmp_path / "x.gguf", 7, {"x": SOUND, "y": TensorLayout("F32", (4,), 0, 2)})
    write_layout(folder, layout, is_beside=is_beside)
    assert read_layout(folder) == layout
    moved = folder.rename(tmp_path.parent / f"{tmp_path.name}-moved")
    found = read_layout(moved)
    assert found
    assert (found.file == layout.file) != is_beside


@pytest.mark.parametrize(
    "text", ["[]", "{}", "{", '{"tensors": [], "file": "x", "num_bytes": 1, "is_beside": true}',
             '{"tensors": {"x": {}}, "file": "x", "num_bytes": 1, "is_beside": true}',
             '{"tensors": {}, "file": 5, "num_bytes": 1, "is_beside": true}',
             '{"tensors": {}, "file": "x", "num_bytes": null, "is_beside": true}',
             "[" * 200_000],
)  # fmt: skip
def test_a_damaged_layout_is_an_error_of_its_own_kind(tmp_path: Path, text: str) -> None:
    (tmp_path / "gguf-layout.json").write_text(text)
    with pytest.raises(ValueError, match=r"."):
        read_layout(tmp_path)
