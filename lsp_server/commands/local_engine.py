"""The settings and the engine of a command that completes by itself, without a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from completion_engine.config import AUTO, DEFAULT_TARGET, EngineConfig
from lsp_server.workspace import settings_file as files
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_layers import narrow
from lsp_server.workspace.settings_reading import Merged, merge

if TYPE_CHECKING:
    from completion_engine.choice.choice import Choice
    from completion_engine.engine import CompletionEngine
    from completion_engine.request import Progress


def settings_for(folder: Path) -> Merged:
    """The user's settings as the repository in `folder` narrows them, and a sentence for each bad one."""
    values, unreadable = files.read_user_file(files.user_file())
    user = merge(Settings(), values, str(files.user_file()))
    own, unreadable_own = files.read_repository_file(folder)
    narrowed = narrow(user.settings, own, str(folder / files.REPOSITORY_FILE))
    problems = (*unreadable, *user.problems, *unreadable_own, *narrowed.problems)
    return Merged(narrowed.settings, problems)


def reported_settings(folder: Path) -> Settings:
    """The settings for `folder`; writes what is wrong with them to stderr."""
    merged = settings_for(folder)
    sys.stderr.writelines(f"slipstream: {problem}\n" for problem in merged.problems)
    return merged.settings


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
