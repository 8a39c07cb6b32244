"""Makes the pictures of VS Code: a suggestion in a small project with its sources, and a proposed edit.

Run as `python -m tests.editors.vscode.picture docs/vscode.png docs/next-edit.png`, after `make
editors`. Owns what is in them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.editors.vscode import extension, workbench
from tests.editors.vscode.test_next_edit import change_two_calls
from tests.editors.vscode.window import Window, browsing, until

SETTINGS = {
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.activityBar.location": "hidden",
    "workbench.layoutControl.enabled": False,
    "window.commandCenter": False,
    "breadcrumbs.enabled": False,
    "editor.fontFamily": "DejaVu Sans Mono",
    "editor.fontSize": 13,
    "editor.scrollbar.vertical": "hidden",
    "editor.overviewRulerBorder": False,
}

USERS = '''"""The users and where they are kept."""

from dataclasses import dataclass
from sqlite3 import Connection


@dataclass
class User:
    id: int
    name: str
    email: str


class UserStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, user_id: int) -> User | None:
        """The user with this id, if there is one."""
        query = "SELECT id, name, email FROM users WHERE id = ?"
        row = self._connection.execute(query, (user_id,)).fetchone()
        return User(*row) if row else None
'''

ORDERS = '''"""The orders and where they are kept."""

from dataclasses import dataclass
from sqlite3 import Connection


@dataclass
class Order:
    id: int
    customer: str
    total: float


class OrderStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

'''

TYPED = '''    def find(self, order_id: int) -> Order | None:
"""The order with this id, if there is one."""
query = "SELECT * FROM orders WHERE id = ?"
row = '''


def main(suggestion: Path, next_edit: Path) -> int:
    """Write the pictures of a suggestion and of a proposed edit."""
    with tempfile.TemporaryDirectory(prefix="slipstream-picture-") as scratch:
        folder, profile = Path(scratch) / "shop", Path(scratch) / "profile"
        folder.mkdir()
        (folder / "users.py").write_text(USERS)
        server = [str(Path(sys.executable).parent / "slipstream"), "serve", "--stdio"]
        with (
            workbench.running(
                profile,
                vsix=extension.package(),
                settings=SETTINGS,
                machine_settings={"slipstream.server.command": server},
                env={"SLIPSTREAM_INDEX_DIR": str(profile / "index")},
            ) as started,
            browsing() as browser,
            Window.on(browser, started.url(folder), folder, scale=2) as window,
        ):
            window.wait_until_up()
            window.wait_until_ready()
            window.run("View: Toggle Primary Side Bar Visibility")
            show_next_edit(window, next_edit)
            show_suggestion(window, suggestion)
    return 0


def show_next_edit(window: Window, target: Path) -> None:
    """Call another method in two lines, and take the picture when the same is proposed in a third."""
    window.page.set_viewport_size({"width": 820, "height": 330})
    window.run("View: Close All Editors")
    change_two_calls(window, "steps.py")
    window.press("ArrowUp")
    until(lambda: "Tab to jump" in window.attached(), what="proposed edit")
    window.picture(target)
    window.save()


def show_suggestion(window: Window, target: Path) -> None:
    """Type into the second module, beside the view of the sources."""
    window.page.set_viewport_size({"width": 1100, "height": 570})
    window.run("View: Close All Editors")
    window.open("orders.py", ORDERS)
    window.run("Slipstream: Show Statistics")
    window.type(TYPED)
    window.ghost_text()
    # Over the suggestion it would open a toolbar.
    window.page.mouse.move(300, 560)
    window.page.wait_for_timeout(3000)
    window.picture(target)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
