"""Inputs that coverage chooses: atheris drives the same generators and oracles, in a process for each kind.

Owns how bytes become a generator's random numbers, and the process. Atheris is not among the packages that
tests need: `pip install atheris`.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from tests.fuzz.driver import Budget, Result, Run

_OURS = ["lsp_server", "ngram_cache", "completion_engine.target_model", "completion_engine.models"]
_OURS += ["completion_engine.prompting", "completion_engine.loading", "tests.fuzz", "tomllib", "gguf"]
# Imported as they are, since numba reads their bytecode itself.
_KERNELS = ["completion_engine.cpu.int8_decoder"]
_MAX_BYTES = 4096
_NUM_FIRST = 32


class ByteDraws(random.Random):
    """Random numbers out of bytes: a changed byte changes a draw. Where those end, out of their hash."""

    def __new__(cls, _data: bytes) -> ByteDraws:
        """As any generator; the bytes are not a seed."""
        return super().__new__(cls)

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        super().__init__(data)

    def random(self) -> float:
        """See `random.Random`."""
        return self._take(2) / (1 << 16) if self._at < len(self._data) else super().random()

    def getrandbits(self, k: int) -> int:
        """See `random.Random`."""
        if self._at >= len(self._data):
            return super().getrandbits(k)
        return self._take(-(-k // 8)) & ((1 << k) - 1)

    def _take(self, num_bytes: int) -> int:
        """The next bytes as a number; it ends with them."""
        piece = self._data[self._at : self._at + num_bytes]
        self._at += num_bytes
        return int.from_bytes(piece, "little")


def run_guided(kind: str, budget: Budget, seed: str) -> Result:
    """One kind in a process of its own; raises CalledProcessError where that ends by itself."""
    with tempfile.TemporaryDirectory(prefix="fuzz-guided-") as temporary:
        folder = Path(temporary)
        _write_first_inputs(folder / "inputs", seed)
        order = {"kind": kind, **asdict(budget), "seed": seed, "folder": temporary}
        command = [sys.executable, "-m", "tests.fuzz.guided", json.dumps(order)]
        with (folder / "log").open("wb") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log)
        return Result(**json.loads((folder / "result.json").read_text()))


def _write_first_inputs(folder: Path, seed: str) -> None:
    """What coverage begins with: from empty inputs it would take long to the first large one."""
    folder.mkdir()
    rng = random.Random(seed)  # noqa: S311 - no secret
    for number in range(_NUM_FIRST):
        (folder / str(number)).write_bytes(rng.randbytes(rng.randrange(_MAX_BYTES // 4)))


def main() -> NoReturn:
    """Fuzz until the budget is spent; libFuzzer itself does not return."""
    import atheris

    logging.disable(logging.CRITICAL)
    order = json.loads(sys.argv[1])
    kind, folder = order["kind"], Path(order["folder"])
    inputs = str(folder / "inputs")
    for module in _KERNELS:
        importlib.import_module(module)
    with atheris.instrument_imports(include=_OURS):
        check = importlib.import_module(f"tests.fuzz.{kind}").check
    run = Run(kind, check, Budget(order["num_inputs"], order["seconds"]))

    def judge(data: bytes) -> None:
        run.take(f"bytes.fromhex({data.hex()!r})", ByteDraws(data))
        if run.has_ended:
            (folder / "result.json").write_text(json.dumps(asdict(run.result)))
            os._exit(0)

    # Hangs are the driver's to see.
    options = [f"-max_len={_MAX_BYTES}", "-len_control=0", "-timeout=100000", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], f"-seed={zlib.crc32(order['seed'].encode())}", *options, inputs], judge)
    atheris.Fuzz()
    raise AssertionError


if __name__ == "__main__":
    main()
