"""Characters spared against characters shown wrong, by eagerness: real modules typed as a person would.

What the target writes at a place is asked once, without a deadline, and kept; every eagerness walks over the
same recording. A file's repository is known as an editor has it, the file itself left out. Owns which modules
are typed, how the engine is asked, and the figures.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest
from completion_engine.stats import Forecast
from lsp_server.tools.bench.context import context_of
from lsp_server.tools.bench.prompts import repository_index, source_files
from lsp_server.tools.replay.curve import Tally, shows, walk
from lsp_server.tools.replay.forecasts import Forecasts
from lsp_server.tools.replay.plan import TypingPlan
from lsp_server.tools.replay.run import Options, planned
from lsp_server.tools.source_file import language_id

EAGERNESSES = (0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)
_RECORDED = 0.995  # what is less likely right than this leaves is never shown
_MIN_BYTES, _MAX_BYTES = 5_000, 60_000
_ENDINGS = {".py", ".ts", ".js"}


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


def drawn_modules(root: Path, num_modules: int, seed: int) -> list[tuple[Path, Path]]:
    """Modules of the projects below `root`, of as many projects as can be, each with its project's folder.

    The same seed draws the same ones.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    projects = sorted(folder for folder in root.iterdir() if folder.is_dir())
    modules = {project: list(filter(_is_fit, source_files(project, _ENDINGS))) for project in projects}
    rng.shuffle(projects)
    drawn: list[tuple[Path, Path]] = []
    while len(drawn) < num_modules and any(modules.values()):
        for project in projects:
            if modules[project] and len(drawn) < num_modules:
                drawn.append((project, modules[project].pop(rng.randrange(len(modules[project])))))
    return drawn


def typings(modules: Iterable[tuple[Path, Path]], num_keystrokes: int) -> list[Typing]:
    """Of each module a stretch of about so many characters, from a third of it on."""
    options = Options(num_keystrokes)
    return [Typing(project, path, planned(path, options, 1)) for project, path in modules]


def forecasts_of(engine: CompletionEngine, typing: Typing, recording: Path | None) -> Forecasts:
    """What the target writes in a module, as an editor has it after a moment's rest."""
    language, name = language_id(typing.path), typing.name
    request = CompletionRequest(
        typing.plan.text[: typing.plan.start],
        typing.plan.text[typing.plan.end :],
        language,
        document=str(typing.path),
        index=repository_index(typing.project, engine.tokenizer.encode_many),
        indexed_as=name,
        deadline_ms=0,
        patience_ms=float("inf"),
        eagerness=_RECORDED,
    )
    request = replace(request, context=context_of(engine, request, typing.project.name))
    engine.prepare_context(request)

    def ask(left: str, right: str) -> Forecast:
        return engine.complete(replace(request, prefix=left, suffix=right)).forecast

    return Forecasts(recording, ask)


def curve(
    typed: Sequence[tuple[Typing, Forecasts]], eagernesses: Sequence[float], tell: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """The figures of each eagerness, over all that is typed."""
    tallies = {eagerness: Tally() for eagerness in eagernesses}
    for num_done, (typing, forecasts) in enumerate(typed):
        for number, eagerness in enumerate(eagernesses):
            tallies[eagerness] += walk(typing.plan, shows(forecasts.at, language_id(typing.path), eagerness))
            tell(num_done * len(eagernesses) + number + 1, len(typed) * len(eagernesses))
    return [{"eagerness": eagerness, **tally.as_dict()} for eagerness, tally in tallies.items()]


def _is_fit(path: Path) -> bool:
    return _MIN_BYTES <= path.stat().st_size <= _MAX_BYTES
