"""Makes the picture of VS Code in the README: a suggestion in a small project, and where its parts came from.

Run as `python -m tests.editors.vscode.picture docs/vscode.png`, after `make editors`. Owns what is in it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.editors.vscode import extension, workbench
from tests.editors.vscode.window import Window, browsing

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


def main(target: Path) -> int:
    """Write the picture to `target`."""
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
            window.page.set_viewport_size({"width": 1100, "height": 570})
            window.run("View: Close All Editors")
            window.open("orders.py", ORDERS)
            window.run("View: Toggle Primary Side Bar Visibility")
            window.run("Slipstream: Show Statistics")
            window.type(TYPED)
            window.ghost_text()
            # Over the suggestion it would open a toolbar.
            window.page.mouse.move(300, 560)
            window.page.wait_for_timeout(3000)
            window.picture(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
