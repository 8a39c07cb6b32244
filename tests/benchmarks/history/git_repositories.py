"""Small git repositories with a known author, made by git itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

AUTHOR = "ada@example.org"


class Repository:
    """A repository under construction; `commit` takes the texts of its files, None to delete one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.email", AUTHOR)
        self.git("config", "user.name", "Ada")

    def git(self, *arguments: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env = {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-C", str(self.root), *arguments]
        done = subprocess.run(command, env=env, check=True, capture_output=True)
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def commit(
        self, files: Mapping[str, str | bytes | None], message: str = "A change", *, author: str = AUTHOR
    ) -> str:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message, "--author", f"Ada <{author}>")
        return self.git("rev-parse", "HEAD")

    def state(self) -> dict[str, bytes]:
        """Every file below the root, git's own included."""
        return {str(path): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}
