"""A foreign folder may lie about its files: then it counts as damaged, and opens no other file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from completion_engine.models.gguf_preparation import MANIFEST, header_damage, read_manifest
from completion_engine.models.hub import find_flaw
from completion_engine.target_model.model_files import read_config, weight_files

DEEP = "[" * 200_000
INDEX = "model.safetensors.index.json"
FILES = {
    name: {"num_bytes": 1, "sha256": ""} for name in ("config.json", "tokenizer.json", "gguf-layout.json")
}
PLAIN = {"format": 2, "source": {}, "files": FILES}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    for path in (made / "config.json", made / "tokenizer.json"):
        path.write_text("{}")
    for path in (tmp_path / "outside.safetensors", made / "model.safetensors"):
        path.write_bytes((2).to_bytes(8, "little") + b"{}")
    return made


def with_index(folder: Path, text: str) -> Path:
    (folder / INDEX).write_text(text)
    return folder


def shards(*names: object) -> str:
    return json.dumps({"weight_map": dict(enumerate(names))})


def test_a_folder_in_order_has_no_flaw(folder: Path) -> None:
    assert find_flaw(folder) == ""
    assert find_flaw(with_index(folder, shards("model.safetensors", "model.safetensors"))) == ""


@pytest.mark.parametrize(
    "index",
    [
        DEEP,
        "[]",
        '{"weight_map": []}',
        shards(),
        shards(5),
        shards("model.safetensors", 5),
        shards(["model.safetensors"]),
        shards(None),
        shards(""),
        shards(".."),
        shards("../outside.safetensors"),
        shards("..\\outside.safetensors"),
        shards("C:outside.safetensors"),
        shards("/etc/hostname"),
        shards("a\0b"),
        shards("\ud800"),
    ],
)
def test_an_index_that_names_anything_but_files_beside_it_is_damaged(folder: Path, index: str) -> None:
    assert find_flaw(with_index(folder, index)) == f"{INDEX} is damaged"
    with pytest.raises(ValueError, match=r"."):
        weight_files(folder)


@pytest.mark.parametrize(
    "header",
    [
        DEEP,
        "[1]",
        '{"a": 1}',
        '{"a": {"data_offsets": []}}',
        '{"a": {"data_offsets": [0, "1"]}}',
        '{"a": {"data_offsets": [0, 1]}, "b": {"data_offsets": [0, null]}}',
    ],
)
def test_a_header_that_says_anything_else_is_damaged(folder: Path, header: str) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode())
    assert header_damage(path) == "model.safetensors has a damaged header"


@pytest.mark.parametrize("weights", ["gguf-layout.json", "model.safetensors"])
def test_a_manifest_in_order_is_read(folder: Path, weights: str) -> None:
    files = {weights if name == "gguf-layout.json" else name: file for name, file in FILES.items()}
    (folder / MANIFEST).write_text(json.dumps(PLAIN | {"files": files}))
    assert read_manifest(folder) == PLAIN | {"files": files}


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        *(
            json.dumps({name: value for name, value in PLAIN.items() if name != left_out})
            for left_out in ("format", "files")
        ),
        json.dumps(PLAIN | {"format": 1}),
        json.dumps(PLAIN | {"files": FILES | {"../outside": FILES["config.json"]}}),
        json.dumps(PLAIN | {"files": FILES | {"more": {"num_bytes": 1}}}),
        json.dumps(PLAIN | {"files": FILES | {"more": {"num_bytes": "1", "sha256": ""}}}),
    ],
)
def test_a_manifest_that_says_anything_else_is_none(folder: Path, text: str) -> None:
    (folder / MANIFEST).write_text(text)
    assert read_manifest(folder) is None


def test_a_configuration_that_is_nested_too_deep_is_an_error_of_its_own_kind(folder: Path) -> None:
    (folder / "config.json").write_text(DEEP)
    with pytest.raises(ValueError, match="too deep"):
        read_config(folder)
