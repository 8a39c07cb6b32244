"""Checks of captured work without a GPU: random order of programs, spoiled memory, forbidden operations."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes


class CapturedWork(TorchDispatchMode):
    """Refuses every operation of torch that a CUDA graph cannot replay; kernels of ours pass.

    An operation has to give memory that its first argument already has: a view of it, or what was copied into
    it. So none makes a tensor, and none gives the host a number, for which it would have to wait.
    """

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(operation.overloadpacket.__name__)
        result = operation(*args, **(kwargs or {}))
        parts = result if isinstance(result, list | tuple) else [result]
        for part in parts:
            is_old = isinstance(part, Tensor) and bool(args) and isinstance(args[0], Tensor)
            assert is_old and _memory_of(part) == _memory_of(args[0]), f"{name} is not captured work"
        assert name != "lift_fresh", "a tensor made of the host's numbers is not captured work"
        if name == "copy_":
            assert args[0].device == args[1].device, "a copy between devices is not captured work"
        return result


def _memory_of(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@contextmanager
def captured() -> Iterator[None]:
    """Work in the block is held to what can be captured."""
    from triton.runtime.interpreter import GridExecutor

    launch = GridExecutor.__call__

    def unwatched(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():  # the interpreter's own use of torch
            return launch(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, CapturedWork():
        patch.setattr(GridExecutor, "__call__", unwatched)
        yield


@contextmanager
def programs_shuffled(seed: int) -> Iterator[list[int]]:
    """The programs of each launch run in a random order; yield the numbers of programs of the launches."""
    from triton.runtime.interpreter import InterpreterBuilder

    begin, go_to = InterpreterBuilder.set_grid_dim, InterpreterBuilder.set_grid_idx
    rng = random.Random(seed)  # noqa: S311 - no secret
    order, launched = list[int](), list[int]()

    def shuffle(builder: Any, x: int, y: int, z: int) -> None:
        begin(builder, x, y, z)
        order[:] = rng.sample(range(x * y * z), x * y * z)
        launched.append(x * y * z)

    def other(builder: Any, x: int, y: int, z: int) -> None:
        _, num_y, num_z = builder.grid_dim
        at = order[(x * num_y + y) * num_z + z]
        go_to(builder, at // (num_y * num_z), at // num_z % num_y, at % num_z)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InterpreterBuilder, "set_grid_dim", shuffle)
        patch.setattr(InterpreterBuilder, "set_grid_idx", other)
        yield launched


@contextmanager
def stores_delayed() -> Iterator[list[int]]:
    """A program sees its own stores after a barrier only, and another program's after the launch.

    The list gets the number of stores that each barrier and each launch made visible.
    """
    from triton.runtime.interpreter import GridExecutor, InterpreterBuilder

    store, restore = InterpreterBuilder.create_masked_store, GridExecutor._restore_args_dev
    own, finished, made = list[tuple[Any, ...]](), list[tuple[Any, ...]](), list[int]()
    go_to = InterpreterBuilder.set_grid_idx

    def delay(builder: Any, *values: Any) -> None:
        own.append((builder, *values))

    def flush(stores: list[tuple[Any, ...]]) -> None:
        made.append(len(stores))
        for values in stores:
            store(*values)
        stores.clear()

    def begin(builder: Any, *place: int) -> None:
        finished.extend(own)
        own.clear()
        go_to(builder, *place)

    def end(executor: Any, *values: Any) -> None:
        flush(finished)
        flush(own)
        restore(executor, *values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InterpreterBuilder, "create_masked_store", delay)
        patch.setattr(InterpreterBuilder, "create_barrier", lambda _builder: flush(own))
        patch.setattr(InterpreterBuilder, "set_grid_idx", begin)
        patch.setattr(GridExecutor, "_restore_args_dev", end)
        yield made


def buffers_of(owner: Any, path: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Tensor]]:
    """Every tensor that an object of the GPU path reaches, with the way to it."""
    seen = set() if seen is None else seen
    if id(owner) in seen:
        return
    seen.add(id(owner))
    if isinstance(owner, Tensor):
        yield path, owner
        return
    if isinstance(owner, Mapping):
        parts = {str(key): part for key, part in owner.items()}
    elif isinstance(owner, list | tuple):
        parts = {str(at): part for at, part in enumerate(owner)}
    elif is_dataclass(owner):
        parts = {one.name: getattr(owner, one.name) for one in fields(owner)}
    else:
        is_ours = type(owner).__module__.startswith("completion_engine.gpu")
        parts = dict(vars(owner)) if is_ours and hasattr(owner, "__dict__") else {}
    for name, part in parts.items():
        yield from buffers_of(part, f"{path}.{name}", seen)


def snapshot(*owners: Any) -> dict[str, Tensor]:
    """Copies of all their buffers."""
    return {
        f"{at}{path}": buffer.clone() for at, owner in enumerate(owners) for path, buffer in buffers_of(owner)
    }


def changed(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> list[str]:
    """The buffers that differ in a bit, but those that are new."""
    return [name for name, one in before.items() if not _is_same(one, after[name])]


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether all bits are the same; NaN is what it was."""
    return one.numpy().tobytes() == other.numpy().tobytes()


@torch.inference_mode()
def spoil(*buffers: Tensor) -> None:
    """Fill work space with NaN, or with an integer that is not a token."""
    for buffer in buffers:
        buffer.fill_(float("nan") if buffer.is_floating_point() else -(1 << 40))
