"""Characters spared against characters shown wrong, by eagerness: real modules typed as a person would.

The target's text at a position is requested once, without a deadline, and kept; every eagerness walks over
the same recording. A file's repository is known as an editor has it, the file itself left out. Owns which
modules are typed, how the engine is asked, and the figures.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from completion_engine.cutting.language_names import language_of_path
from completion_engine.decoding.low_confidence_names import IsKnown, KnownNames
from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest, Forecast
from lsp_server.commands.local_engine import context_of
from lsp_server.commands.replay import ReplayOptions, planned
from lsp_server.scripted_typing.screen import ScreenLog, sum_of
from lsp_server.scripted_typing.typing_plan import TypingPlan
from lsp_server.scripted_typing.typist import TYPISTS, TypistName
from tests.benchmarks.eagerness.curve import KnowsAt, shows, walk
from tests.benchmarks.eagerness.forecasts import Forecasts
from tests.benchmarks.samples import repository_index, source_files

EAGERNESSES = (0.9, 0.8, 0.7, 0.6, 0.55, 0.5, 0.45, 0.4)
_RECORDED = 0.98  # less likely text is never shown
_MIN_BYTES, _MAX_BYTES = 5_000, 60_000
USUAL_ENDINGS = (".py", ".ts", ".js")


@dataclass(frozen=True, slots=True)
class Typing:
    """A module of a project, the stretch of it that is typed, and how."""

    project: Path
    path: Path
    plan: TypingPlan

    @property
    def name(self) -> str:
        """Its path, as the project's index names it."""
        return self.path.relative_to(self.project).as_posix()


def drawn_modules(
    root: Path, num_modules: int, seed: int, endings: Collection[str] = USUAL_ENDINGS
) -> list[tuple[Path, Path]]:
    """Modules of the projects below `root`, of as many projects as can be, each with its project's folder.

    The same seed draws the same ones.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    projects = sorted(folder for folder in root.iterdir() if folder.is_dir())
    modules = {project: list(filter(_is_fit, source_files(project, endings))) for project in projects}
    rng.shuffle(projects)
    drawn: list[tuple[Path, Path]] = []
    while len(drawn) < num_modules and any(modules.values()):
        for project in projects:
            if modules[project] and len(drawn) < num_modules:
                drawn.append((project, modules[project].pop(rng.randrange(len(modules[project])))))
    return drawn


def typings(modules: Iterable[tuple[Path, Path]], num_keystrokes: int) -> list[Typing]:
    """A stretch of about this number of characters of each module, from a third of it on."""
    options = ReplayOptions(num_keystrokes)
    return [Typing(project, path, planned(path, options, 1)) for project, path in modules]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A typed module, what the target writes in it, and which names are known there."""

    typing: Typing
    forecasts: Forecasts
    knows_at: KnowsAt


def recorded(engine: CompletionEngine, typing: Typing, path: Path | None) -> Recorded:
    """The text in a module as an editor has it after a moment's rest; kept in `path`."""
    request = CompletionRequest(
        typing.plan.text[: typing.plan.start],
        typing.plan.text[typing.plan.end :],
        language_of_path(typing.path.name),
        document=str(typing.path),
        index=repository_index(typing.project, engine.tokenizer.encode_many),
        indexed_as=typing.name,
        deadline_ms=0,
        patience_ms=float("inf"),
        eagerness=_RECORDED,
    )
    request = replace(request, context=context_of(engine, request, typing.project.name))
    engine.prepare_context(request)

    def ask(left: str, right: str) -> Forecast:
        return engine.complete(replace(request, prefix=left, suffix=right)).forecast

    def knows_at(left: str, right: str) -> IsKnown | None:
        names = KnownNames(replace(request, prefix=left, suffix=right), engine.tokenizer)
        return names.__contains__ if names.can_judge else None

    return Recorded(typing, Forecasts(path, ask), knows_at)


def curve(
    modules: Sequence[Recorded], eagernesses: Sequence[float], tell: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """The figures of both typists at each eagerness, for every second module and for the others."""
    rows: list[dict[str, Any]] = []
    halves = {"chosen on": modules[::2], "held out": modules[1::2]}
    num_rows = len(halves) * len(eagernesses) * len(TYPISTS)
    for (half, part), eagerness, name in product(halves.items(), eagernesses, TYPISTS):
        found = sum_of(walked(module, eagerness, name) for module in part)
        num_chars = sum(module.typing.plan.num_chars for module in part)
        rows.append({"half": half, "eagerness": eagerness, "typist": name, **found.figures(num_chars)})
        tell(len(rows), num_rows)
    return rows


def walked(module: Recorded, eagerness: float, name: TypistName) -> ScreenLog:
    """What a typist sees of a module."""
    language = language_of_path(module.typing.path.name)
    return walk(
        module.typing.plan, shows(module.forecasts.at, language, eagerness, knows_at=module.knows_at), name
    )


def _is_fit(path: Path) -> bool:
    return _MIN_BYTES <= path.stat().st_size <= _MAX_BYTES
