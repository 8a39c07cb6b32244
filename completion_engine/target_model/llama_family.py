"""The family of models that our kernels run: Llama, Qwen2, Qwen3, Mistral; by what `config.json` says.

Owns the test of a configuration, the parts of such a model, the angles that turn queries and keys, and the
base of its decoders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from completion_engine.target_model import model_files
from completion_engine.target_model.brake import Brake
from completion_engine.target_model.gguf_blocks import QuantisedWeight
from completion_engine.target_model.model_files import Config
from completion_engine.target_model.weights import Affine, RowTable, Weights

_KINDS = frozenset({"llama", "qwen2", "qwen3", "mistral"})
_SAID = frozenset(
    {
        "hidden_act", "hidden_size", "num_attention_heads", "num_hidden_layers", "num_key_value_heads",
        "rms_norm_eps", "vocab_size",
    }
)  # fmt: skip
_CPU = torch.device("cpu")
_THETA = "rope_theta"
_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"
_PRODUCTS = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "out": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}


def read_family_config(folder: Path) -> Config:
    """The configuration in `folder`, complete where it is of the family; errors as in `read_config`."""
    config = model_files.read_config(folder)
    is_silent = not config.keys() >= _SAID or not (_THETA in config or "rope_parameters" in config)
    return model_files.completed(folder) if config.get("model_type") in _KINDS and is_silent else config


def is_of_family(config: Config) -> bool:
    """Whether a model of this configuration has exactly the structure that our kernels compute."""
    kind = config.get("model_type")
    kind_of_all = "sliding_attention" if config.get("use_sliding_window") else "full_attention"
    return (
        kind in _KINDS
        and config.get("hidden_act") == "silu"
        and all(layer == "full_attention" for layer in config.get("layer_types") or [kind_of_all])
        and not (kind == "mistral" and config.get("sliding_window"))
        and not config.get("quantization_config")
    )


class LayerParts(NamedTuple):
    """One layer; norms are [hidden_size], those of heads [head_size] and only some models have them."""

    input_norm: Tensor
    q: Affine
    k: Affine
    v: Affine
    out: Affine
    mlp_norm: Tensor
    gate: Affine
    up: Affine
    down: Affine
    q_norm: Tensor | None
    k_norm: Tensor | None

    def to(self, device: torch.device) -> LayerParts:
        """The same parts on `device`; weights that were not read stay as they are."""

        def moved(part: Any) -> Any:
            if isinstance(part, tuple):
                return tuple(moved(half) for half in part)
            return part if part is None or part.is_meta else part.to(device)

        return LayerParts(*(moved(part) for part in self))


class FamilyModel:
    """A model's sizes and its parts, which are read when they are asked for."""

    def __init__(self, config: Config, weights: Weights) -> None:
        """Raises DataError where sizes or shapes make no model; so do the parts when they are read."""
        model_files.check_sizes(config)
        self.num_layers: int = config["num_hidden_layers"]
        self.num_heads: int = config["num_attention_heads"]
        self.num_kv_heads: int = config["num_key_value_heads"]
        self.hidden_size: int = config["hidden_size"]
        self.vocab_size: int = config["vocab_size"]
        self.head_size = weights.shape_of("model.layers.0.self_attn.q_proj.weight")[0] // self.num_heads
        self.eps = float(config["rms_norm_eps"])
        self._config, self._weights = config, weights
        vocabulary = self.vocab_size, self.hidden_size
        model_files.check_shapes(
            "the model",
            (
                ("the embedding", weights.shape_of(_EMBEDDING), vocabulary),
                ("the head", weights.shape_of(self._head_name), vocabulary),
                ("the last norm", weights.shape_of("model.norm.weight"), (self.hidden_size,)),
            ),
        )
        model_files.check_head(self.head_size)

    @property
    def embedding(self) -> Tensor:
        """[vocab_size, hidden_size]; a copy, because a mapped file that is cut short ends the process."""
        return self._weights[_EMBEDDING].clone()

    @property
    def embedding_table(self) -> RowTable:
        """The embedding [vocab_size, hidden_size], whose rows may be decoded when they are first used."""
        return self._weights.table(_EMBEDDING)

    @property
    def norm(self) -> Tensor:
        """Norm before the head, [hidden_size]."""
        return self._weights["model.norm.weight"].clone()

    @property
    def is_tied(self) -> bool:
        """Whether the head is the embedding."""
        return bool(self._config.get("tie_word_embeddings")) or _HEAD not in self._weights

    @property
    def _head_name(self) -> str:
        return _EMBEDDING if self.is_tied else _HEAD

    @property
    def head(self) -> Tensor:
        """[vocab_size, hidden_size]."""
        return self.embedding if self.is_tied else self._weights[_HEAD]

    @property
    def quantised_head(self) -> list[QuantisedWeight]:
        """The head as the model's file quantises it, in a list that is empty for plain numbers."""
        found = self._weights.quantised(self._head_name)
        return [found] if found else []

    def product(self, index: int, part: str) -> Tensor:
        """The weight of a layer's product, named as in `LayerParts`, [num_outputs, num_inputs]."""
        return self._weights[f"model.layers.{index}.{_PRODUCTS[part]}.weight"]

    def quantised(self, index: int, parts: Sequence[str]) -> list[QuantisedWeight]:
        """Some weights of a layer, named as in `LayerParts`, as the model's file quantises them.

        The list is empty unless the file quantises all of them.
        """
        names = [f"model.layers.{index}.{_PRODUCTS[part]}.weight" for part in parts]
        found = [weight for name in names if (weight := self._weights.quantised(name))]
        return found if len(found) == len(parts) else []

    def layer(self, index: int, *, reads_products: bool = True) -> LayerParts:
        """One layer's parts; without `reads_products` its products' weights have shapes but no numbers."""
        name = f"model.layers.{index}"

        def tensor(full_name: str) -> Tensor | None:
            return self._weights[full_name] if full_name in self._weights else None  # noqa: SIM401 - has no get

        def affine(part: str) -> Affine:
            weight = f"{name}.{_PRODUCTS[part]}.weight"
            shape = self._weights.shape_of(weight)
            numbers = self._weights[weight] if reads_products else torch.empty(shape, device="meta")
            return numbers, tensor(f"{name}.{_PRODUCTS[part]}.bias")

        def norm(part: str) -> Tensor | None:
            weight = tensor(f"{name}.{part}.weight")
            return None if weight is None else weight.clone()

        parts = LayerParts(
            input_norm=self._weights[f"{name}.input_layernorm.weight"].clone(),
            q=affine("q"),
            k=affine("k"),
            v=affine("v"),
            out=affine("out"),
            mlp_norm=self._weights[f"{name}.post_attention_layernorm.weight"].clone(),
            gate=affine("gate"),
            up=affine("up"),
            down=affine("down"),
            q_norm=norm("self_attn.q_norm"),
            k_norm=norm("self_attn.k_norm"),
        )
        shapes = ((what, tuple(weight.shape), shape) for what, weight, shape in self._shapes(parts))
        model_files.check_shapes(f"layer {index}", shapes)
        return parts

    def _shapes(self, parts: LayerParts) -> Iterator[tuple[str, Tensor, tuple[int, ...]]]:
        """Yield each tensor of a layer with its expected shape."""
        hidden, mlp = self.hidden_size, len(parts.gate[0])
        queries, keys = self.num_heads * self.head_size, self.num_kv_heads * self.head_size
        sizes = {
            "q": (queries, hidden), "k": (keys, hidden), "v": (keys, hidden), "out": (hidden, queries),
            "gate": (mlp, hidden), "up": (mlp, hidden), "down": (hidden, mlp),
        }  # fmt: skip
        for name, shape in sizes.items():
            weight, bias = getattr(parts, name)
            yield name, weight, shape
            if bias is not None:
                yield f"the bias of {name}", bias, shape[:1]
        norms = {"input_norm": hidden, "mlp_norm": hidden, "q_norm": self.head_size, "k_norm": self.head_size}
        for name, size in norms.items():
            weight = getattr(parts, name)
            if weight is not None:
                yield name, weight, (size,)

    def rotary_tables(self, num_positions: int) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines [num_positions, 1, head_size], of the type of the weights."""
        return rotary_tables(self._config, self.head_size, num_positions, self.norm.dtype)


class FamilyDecoder:
    """The common part of decoders of the Llama family: sizes; on `device` embedding, last norm and angles."""

    def __init__(
        self,
        model: FamilyModel,
        num_positions: int,
        device: torch.device = _CPU,
        embedding: RowTable | None = None,
    ) -> None:
        """`embedding` takes the place of a copy of the model's."""
        self.num_layers, self.hidden_size = model.num_layers, model.hidden_size
        self.num_heads, self.num_kv_heads = model.num_heads, model.num_kv_heads
        self.head_size, self.vocab_size = model.head_size, model.vocab_size
        self.eps = model.eps
        self._norm = model.norm.to(device)
        self._embedding: RowTable = model.embedding.to(device) if embedding is None else embedding
        self._cos, self._sin = (table.to(device) for table in model.rotary_tables(num_positions))
        self.brake = Brake()

    @property
    def embedding(self) -> RowTable:
        """See `Decoder.embedding`."""
        return self._embedding

    @property
    def rotary(self) -> tuple[Tensor, Tensor]:
        """See `Decoder.rotary`: cosines and signed sines [num_positions, 1, head_size]."""
        return self._cos, self._sin


def stacked(*layers: Affine) -> Affine:
    """Several layers that read the same input as one, outputs side by side."""
    return torch.cat([weight for weight, _ in layers]), stacked_bias(*layers)


def stacked_bias(*layers: Affine) -> Tensor | None:
    """The bias of `stacked`; None where no layer has one."""
    if all(bias is None for _, bias in layers):
        return None
    return torch.cat([weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in layers])


def rotate(x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """Turn `x` [num_rows, num_heads, head_size] by its rows' angles, each [num_rows, 1, head_size]."""
    return x * cos + torch.roll(x, x.shape[-1] // 2, -1) * signed_sin


def rotary_tables(
    config: Config, head_size: int, num_positions: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines [num_positions, 1, head_size] of a model of the family.

    Plain rotation by powers of theta is ours (Su et al. 2021, arXiv:2104.09864), with halves side by side
    as transformers has them; stretched ones, as of Llama 3, are its module's. Powers, cosines and sines are
    computed in float64 and rounded, for float32's last bit differs from one machine's library to the next.
    """
    positions = torch.arange(num_positions)
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if (rope.get("rope_type") or rope.get("type") or "default") == "default":
        theta = float(rope.get(_THETA) or config[_THETA])
        powers = torch.arange(0, head_size, 2, dtype=torch.int64).float() / head_size
        inverses = 1.0 / (theta ** powers.double()).float()
        angles = torch.outer(positions.float(), inverses).repeat(1, 2).double()
        cos, sin = angles.cos().float().to(dtype), angles.sin().float().to(dtype)
    else:
        cos, sin = _stretched(config, head_size, positions, dtype)
    half = head_size // 2
    signed = torch.cat([-sin[:, :half], sin[:, half:]], dim=-1)
    return cos[:, None].contiguous(), signed[:, None].contiguous()


def _stretched(
    config: Config, head_size: int, positions: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    from transformers import LlamaConfig  # noqa: PLC0415 - seconds that plain rotation need not pay
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding  # noqa: PLC0415 - as above

    module = LlamaRotaryEmbedding(LlamaConfig.from_dict({**config, "head_dim": head_size}))
    cos, sin = module(torch.empty(0, dtype=dtype), positions[None])
    return cos[0], sin[0]
