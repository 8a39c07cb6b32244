"""Runs the Python program on stdin within limits: on processor and memory, no files, sockets or processes.

Started as a process of its own, by its path. The limits keep a mistake from doing harm; they do not stop an
attacker.
"""

from __future__ import annotations

import os
import sys

MAX_CPU_S = 10
MAX_BYTES = 1 << 30
_FORBIDDEN = (
    "socket.", "subprocess.", "ctypes.", "shutil.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
    "os.system", "os.kill", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink",
    "os.truncate", "os.chmod", "os.chown", "os.putenv", "pty.", "signal.", "webbrowser.", "urllib.",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def forbid(event: str, details: tuple[object, ...]) -> None:
    """An audit hook, which no program can take off again."""
    is_writing = event == "open" and isinstance(details[2], int) and bool(details[2] & _WRITING)
    if is_writing or event.startswith(_FORBIDDEN):
        raise PermissionError(event)


def bound() -> None:
    """From here on little processor and memory, and no files, for this process."""
    if sys.platform == "win32":
        raise OSError("Windows has no such limits: programs are not run there")
    import resource

    for limit, most in (
        (resource.RLIMIT_CPU, MAX_CPU_S),
        (resource.RLIMIT_AS, MAX_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))


def main() -> None:
    """Read the program, apply the limits, run it."""
    program = compile(sys.stdin.read(), "program", "exec")
    bound()
    sys.addaudithook(forbid)
    exec(program, {"__name__": "__main__"})  # noqa: S102 - what this process is for


if __name__ == "__main__":
    main()
