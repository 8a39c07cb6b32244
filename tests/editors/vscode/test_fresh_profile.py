"""The first minutes with the extension: its package on a new profile, with no setting at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from completion_engine.config import DEFAULT_TARGET
from tests.editors.vscode import workbench
from tests.editors.vscode.conftest import SCREENS
from tests.editors.vscode.window import Window, until
from tests.hosts import own_hosts

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1800)]

# Setting up fetches torch and its company.
SETUP_TIMEOUT_S = 1500.0


def path_without_slipstream() -> str:
    """The PATH as on a machine where no server was ever installed."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (Path(folder) / "slipstream").exists())


def test_a_new_user_gets_a_suggestion_without_setting_up_anything(
    vsix: Path,
    program: Callable[[str, str], Path],
    real_model_dir: Path,
    open_window: Callable[..., AbstractContextManager[Window]],
    tmp_path: Path,
) -> None:
    program("code-server", "code-server")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "known.py").write_text("def add(first, second):\n    return first + second\n")
    profile, config = tmp_path / "profile", tmp_path / "config" / "slipstream" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'target = "{DEFAULT_TARGET}"\n')  # auto would fetch a larger one
    env = {
        "PATH": path_without_slipstream(),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "SLIPSTREAM_INDEX_DIR": str(tmp_path / "index"),
    }
    with (
        own_hosts() as hosts,
        workbench.running(profile, vsix=vsix, env={**env, **hosts.env}) as started,
        open_window(started, folder) as window,
    ):
        until(lambda: "Get Started with Slipstream" in window.text(), what="walkthrough")
        window.picture(SCREENS / "first-minutes-vscode-1.png")
        until(
            lambda: "is installing its server" in " ".join(window.notifications()),
            what="notification of the installation",
        )
        said = window.wait_until_ready(timeout_s=SETUP_TIMEOUT_S)
        assert all(one.startswith("$(loading~spin) Slipstream") for one in said[:-1])
        window.open("mean.py", '"""Statistics of samples."""\n\n\n')
        window.type("def mean(values):\nreturn ")  # there, the model is sure on any machine
        preview = window.whole_preview()
        window.picture(SCREENS / "first-minutes-vscode-2.png")
        window.press("Tab")
        assert window.save().splitlines()[4:] == preview.splitlines()
        assert hosts.only()["num_windows"] == 1
        assert list(profile.glob("User/globalStorage/slipstream.slipstream/environments/*/venv/bin/python"))
    workbench.remove(profile)
