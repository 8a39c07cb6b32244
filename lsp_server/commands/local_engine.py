"""The settings and the engine of a command that completes by itself, without a server."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from completion_engine.config import AUTO, DEFAULT_TARGET, EngineConfig
from completion_engine.errors import UserError
from lsp_server.workspace import settings_file as files
from lsp_server.workspace.open_files import find_folder
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_layers import Configuration
from ngram_cache.repository import RepositoryOptions

if TYPE_CHECKING:
    from completion_engine.choice.choice import Choice
    from completion_engine.engine import CompletionEngine
    from completion_engine.request import Progress


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The user's settings as a folder's file and those around it narrow them, and each problem as a sentence.

    `index` holds the options of the folder's index; None if it is not indexed.
    """

    settings: Settings
    index: RepositoryOptions | None
    problems: tuple[str, ...]


def settings_for(folder: Path) -> FolderSettings:
    """Read the settings that hold in `folder`."""
    configuration, user = Configuration(), files.read_user_file(files.user_file())
    problems = [*user.problems, *configuration.set_layer("config.toml", user.values)]
    _, around = find_folder(folder)
    for place, found in {**around, folder: files.read_repository_file(folder)}.items():
        problems += [*found.problems, *configuration.set_repository(place, found.values)]
    settings = configuration.of(*around, folder)
    return FolderSettings(settings, configuration.index_options(folder, tuple(around)), tuple(problems))


def reported(folder: Path) -> FolderSettings:
    """Read the settings that hold in `folder`, and write their problems to stderr."""
    found = settings_for(folder)
    sys.stderr.writelines(f"slipstream: {problem}\n" for problem in found.problems)
    return found


def indexed(folder: Path) -> tuple[Settings, RepositoryOptions]:
    """Like `reported`, for a folder that is indexed. Raises UserError for another one."""
    found = reported(folder)
    if found.index is None:
        advice = "Change the setting index.enabled, or correct the settings files that are named above."
        raise UserError(f"{folder} is not indexed: its settings exclude it.", advice=advice)
    return found.settings, found.index


def reported_settings(folder: Path) -> Settings:
    """Only the settings of `reported`."""
    return reported(folder).settings


def with_target(settings: Settings) -> Settings:
    """`settings` with a named model instead of `auto`: the one that an editor would start with now."""
    if settings.target != AUTO:
        return settings
    return settings.model_copy(update={"target": choose_target(settings).start})


def named_target(target: str) -> str:
    """The model of a name; `auto` is what an editor without settings would start with now."""
    return choose_target().start if target == AUTO else target


def choose_target(settings: Settings | None = None, running: str = "") -> Choice:
    """The choice of `auto` for an engine of `settings`; `running` is loaded already. Loads torch."""
    from completion_engine.choice.target_chooser import TargetChooser  # noqa: PLC0415 - loads torch
    from lsp_server.engine.pool import engine_config  # noqa: PLC0415 - as above

    named = settings and engine_config(settings.model_copy(update={"target": DEFAULT_TARGET}))
    return TargetChooser().choose(named or EngineConfig(), running)


def load_engine(settings: Settings, report: Progress, *, warms_up: bool = True) -> CompletionEngine:
    """The engine of `settings`, which name a model; fetches the model if it is missing.

    `warms_up` as in `CompletionEngine.from_folder`. Raises SlipstreamError.
    """
    from completion_engine.loading.warmup import compiled_meanwhile  # noqa: PLC0415 - not needed for help
    from completion_engine.models import ModelStore  # noqa: PLC0415 - as above
    from lsp_server.engine.pool import engine_config  # noqa: PLC0415 - as above

    config = engine_config(settings)
    with compiled_meanwhile(config, report):
        ModelStore().ensure(config.target, report)
        from completion_engine.choice.target_chooser import TargetChooser  # noqa: PLC0415 - loads torch
        from completion_engine.engine import CompletionEngine  # noqa: PLC0415 - as above
    engine = CompletionEngine.load(config, report, warms_up=warms_up)
    TargetChooser().record(engine.describe())
    return engine
