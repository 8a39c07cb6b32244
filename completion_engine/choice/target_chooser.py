"""The target `auto` on this machine: gathers the facts, chooses, and remembers passes.

Reads the system, the model store and the device. Loads no model.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import torch

from completion_engine.choice.choice import Choice, Machine, choose
from completion_engine.choice.pass_log import Attempts, PassLog
from completion_engine.config import EngineConfig
from completion_engine.gpu.memory import BITS
from completion_engine.loading.backends import plan_here
from completion_engine.loading.drafters import trained_folder
from completion_engine.loading.model import CAPACITY
from completion_engine.models import ModelStore

_CGROUP = Path("/sys/fs/cgroup")


class TargetChooser:
    """What `auto` means here and now. Blocks: the disk is asked."""

    def __init__(self, store: ModelStore | None = None) -> None:
        self._store = store or ModelStore()
        self._log = PassLog(self._store.root)
        self._attempts = Attempts(self._store.root)

    def choose(
        self, config: EngineConfig, running: str = "", refused: Mapping[str, str] | None = None
    ) -> Choice:
        """The choice for an engine of this configuration, whose own target does not matter.

        `running` is in memory already; `refused` maps models to the reasons that exclude them. Raises
        UserError for a device or dtype that is not to be had.
        """
        stored = [model for model in self._store.list() if model.spec.may_be_chosen]
        stored.sort(key=lambda model: model.spec.num_bytes)
        best = plan_here(config.device, config.dtype).backends[0]
        device, precision, ids = best.device, best.precision, [model.spec.id for model in stored]
        is_packed = precision.kind == "int8" and device.type == "cpu"
        unpacked_bits = 32 if precision.dtype == torch.float32 else BITS[precision.kind]
        weight_bits = 0 if is_packed else unpacked_bits  # 0: packed as the file says
        machine = Machine(
            num_free_bytes(device),
            _num_free_disk_bytes(self._store.root),
            weight_bits,
            CAPACITY[device.type],
            ready=frozenset(model.spec.id for model in stored if model.is_ready),
            fetched=frozenset(model.spec.id for model in stored if model.has_file),
            with_drafter=frozenset(filter(trained_folder, ids if "neural" in config.drafters else ())),
            running=running,
        )
        catalogue = [model.spec for model in stored]
        out = self._attempts.refused(ids) | dict(refused or {})
        if config.draft_model:
            out |= {
                spec.id: "the setting draftModel works only with a target other than auto"
                for spec in catalogue[1:]
            }
        passes = self._log.of(_setting(device.type, precision.name))
        choice = choose(machine, catalogue, passes, out)
        return choice if device.type == "cpu" else replace(choice, beside="")  # a GPU is soon warm anywhere

    def loading(self, target: str) -> AbstractContextManager[None]:
        """To be around the loading of a target: if three loads ended the process, it is not chosen again."""
        if not any(target == model.spec.id for model in self._store.list()):
            return nullcontext()
        return self._attempts.of(target)

    def record(self, engine: Mapping[str, Any]) -> None:
        """Store the pass times of a loaded engine, by its description; only for models of the catalogue."""
        if any(engine["target"] == model.spec.id for model in self._store.list()):
            device = torch.device(engine["device"]).type
            passes = {int(rows): ms for rows, ms in engine["pass_ms"].items()}
            self._log.record(engine["target"], _setting(device, engine["dtype"]), passes)


def num_free_bytes(device: torch.device) -> int:
    """Memory that a model may take on a device: the free memory of the system and of this container."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    num_free: int = psutil.virtual_memory().available
    num_allowed = _num_allowed_bytes()
    return num_free if num_allowed is None else min(num_free, num_allowed)


def is_on_battery() -> bool:
    """Whether the machine runs on its battery; False if that is unknown."""
    ask = getattr(psutil, "sensors_battery", None)
    try:
        battery = ask() if ask else None
    except OSError:  # a container may not see the power supply
        return False
    return battery is not None and battery.power_plugged is False


def _num_allowed_bytes(folder: Path = _CGROUP) -> int | None:
    """Bytes that a container may still take, None without a limit.

    Files that it has read are given back when need be.
    """
    try:
        limit, used = (
            int((folder / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current")
        )
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
        given_back = next(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, StopIteration):
        return None
    return limit - used + given_back


def _num_free_disk_bytes(folder: Path) -> int:
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(existing).free


def _setting(device: str, dtype: str) -> str:
    """The conditions of a pass besides the model."""
    power = "battery" if is_on_battery() else "mains"
    return f"{device} {dtype}, {os.cpu_count()} cores, {power}"
