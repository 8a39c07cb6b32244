"""The engine and the settings for a command that completes by itself, without a server.

Knows where settings lie. Must not know what is completed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from completion_engine.config import AUTO, DEFAULT_TARGET, EngineConfig

if TYPE_CHECKING:
    from completion_engine.choice.choice import Choice
    from completion_engine.engine import CompletionEngine
    from completion_engine.request import Progress
    from lsp_server.workspace.settings import Settings
    from lsp_server.workspace.settings_reading import Merged


def settings_for(folder: Path) -> Merged:
    """The user's settings as the repository in `folder` narrows them, and what is wrong with them."""
    from lsp_server.workspace.narrowing import narrow  # noqa: PLC0415 - loads pydantic
    from lsp_server.workspace.settings import Settings  # noqa: PLC0415 - as above
    from lsp_server.workspace.settings_file import (  # noqa: PLC0415 - as above
        REPOSITORY_FILE,
        read_repository_file,
        read_user_file,
        user_file,
    )
    from lsp_server.workspace.settings_reading import Merged, merge  # noqa: PLC0415 - as above

    values, unreadable = read_user_file(user_file())
    user = merge(Settings(), values, str(user_file()))
    own, unreadable_own = read_repository_file(folder)
    narrowed = narrow(user.settings, own, str(folder / REPOSITORY_FILE))
    problems = (*unreadable, *user.problems, *unreadable_own, *narrowed.problems)
    return Merged(narrowed.settings, problems)


def reported_settings(folder: Path) -> Settings:
    """`settings_for`, with what is wrong told on stderr."""
    merged = settings_for(folder)
    for problem in merged.problems:
        sys.stderr.write(f"slipstream: {problem}\n")
    return merged.settings


def with_target(settings: Settings) -> Settings:
    """`settings` with a model named where they say `auto`: the one that an editor would begin with now."""
    if settings.target != AUTO:
        return settings
    return settings.model_copy(update={"target": automatic_choice(settings).start})


def named_target(target: str) -> str:
    """The model that a name means; `auto` is what an editor without settings would begin with now."""
    return automatic_choice().start if target == AUTO else target


def automatic_choice(settings: Settings | None = None, running: str = "") -> Choice:
    """What `auto` is here and now for an engine of `settings`; `running` is loaded already. Loads torch."""
    from completion_engine.choice.automatic import AutomaticTarget  # noqa: PLC0415 - loads torch
    from lsp_server.engine.pool import engine_config  # noqa: PLC0415 - as above

    named = settings and engine_config(settings.model_copy(update={"target": DEFAULT_TARGET}))
    return AutomaticTarget().choose(named or EngineConfig(), running)


def load_engine(settings: Settings, report: Progress, *, warms_up: bool = True) -> CompletionEngine:
    """The engine that the settings ask for; its model is fetched if need be. Raises SlipstreamError.

    The target is named; see `with_target`. `warms_up` as in `CompletionEngine.from_folder`.
    """
    from completion_engine.loading.warmup import compiled_meanwhile  # noqa: PLC0415 - not needed for help
    from completion_engine.models import ModelStore  # noqa: PLC0415 - as above
    from lsp_server.engine.pool import engine_config  # noqa: PLC0415 - as above

    config = engine_config(settings)
    with compiled_meanwhile(config, report):
        folder = ModelStore().ensure(config.target, report)
        from completion_engine.engine import CompletionEngine  # noqa: PLC0415 - loads torch
    engine = CompletionEngine.from_folder(folder, config, report, warms_up=warms_up)
    from completion_engine.choice.automatic import AutomaticTarget  # noqa: PLC0415 - loads torch

    AutomaticTarget().record(engine.describe())
    return engine
