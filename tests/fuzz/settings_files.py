"""Hostile settings: files of a repository, and values that a client sends.

The oracle: settings that hold, a repository that never widens them, a few short sentences. Owns what such
settings look like.
"""

from __future__ import annotations

import random
from typing import Any

from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_layers import narrow
from lsp_server.workspace.settings_reading import REPOSITORY_FILE, merge, read_repository_file
from tests.fuzz.places import own_folder

_KEYS = (
    "target", "drafters", "draftModel", "device", "dtype", "deadlineMs", "patienceMs", "maxTokens",
    "multiline", "trigger", "languages", "index", "index.exclude", "index.maxFiles", "index.enabled",
    "eagerness", "trace", "a", '"a.b"', "é", "__proto__",
)  # fmt: skip
_VALUES = (
    "1", "-1", "0", "true", '"x"', "[]", "{}", "inf", "nan", "1e400", "0xffffffffffffffffffffff",
    "1979-05-27", '["a", "!b", "**"]', '["*a*a*a*b"]', '"never"', '"\\ud800"', "'''\n'''", '"""\\\n"""',
    "[[[[[]]]]]", "{a={b={c=1}}}", '{python = false, "*" = false}', "[1, 'x', 2.5]",
)  # fmt: skip
_PIECES = ('"', "'", '"""', "'''", *"[]{}.,=\n#\\ a\0é", "\r\n")
_JSON = (None, True, -1, 0, 64, 10**400, 1.5, float("nan"), "", "x", "never", "\ud800", "x" * 5000, [], {})


def check(rng: random.Random) -> None:
    """One file or one value, read as a repository's and merged as a client's."""
    values: Any
    if rng.random() < 0.7:
        data = _text(rng).encode("utf-8", "surrogatepass")
        if rng.random() < 0.2:
            data = data[: rng.randrange(len(data) + 1)] + rng.randbytes(rng.randrange(4))
        folder = own_folder("settings")
        (folder / REPOSITORY_FILE).write_bytes(data)
        values, problems = read_repository_file(folder)
        _check_sentences(problems)
    else:
        values = _json(rng, 0)
    base = Settings()
    merged = merge(base, values, "client")
    narrowed = narrow(merged.settings, values, "repository")
    for result in (merged, narrowed):
        _check_sentences(result.problems)
        Settings.model_validate_json(result.settings.model_dump_json(by_alias=True))
    assert narrowed.settings.max_tokens <= merged.settings.max_tokens
    assert set(merged.settings.index.exclude) <= set(narrowed.settings.index.exclude)
    assert narrowed.settings.target == merged.settings.target


def _check_sentences(problems: tuple[str, ...]) -> None:
    assert len(problems) <= 5
    assert all(len(problem) < 700 and "\0" not in problem for problem in problems)


def _text(rng: random.Random) -> str:
    kind = rng.randrange(4)
    if kind == 0:  # one thing, very often
        number = int(10 ** rng.uniform(0, 4.7))
        return rng.choice(("a=", "[", "")) + (rng.choice(_PIECES) + rng.choice(_PIECES)) * number
    if kind == 1:
        return "".join(rng.choices(_PIECES, k=rng.randrange(60)))
    lines = []
    for _ in range(rng.randrange(12)):
        if rng.random() < 0.2:
            lines.append(f"[{rng.choice(_KEYS)}]")
        else:
            key = ".".join(rng.choices(_KEYS, k=rng.choice((1, 1, 1, 2, 30))))
            lines.append(f"{key} = {rng.choice(_VALUES)}")
    return "\n".join(lines)


def _json(rng: random.Random, depth: int) -> Any:
    if depth == 0 and rng.random() < 0.1:
        value: Any = 1
        for number in range(rng.randrange(5000)):
            value = [value] if number % 2 else {"index": value}
        return value
    kind = rng.random()
    if depth > 4 or (depth and kind < 0.5):
        return rng.choice(_JSON)
    if kind < 0.6:
        return [_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    keys = rng.choices(_KEYS, k=rng.randrange(6))
    found: dict[str, Any] = {key: _json(rng, depth + 1) for key in keys}
    if rng.random() < 0.05:
        found |= {f"k{number}": number for number in range(rng.randrange(40_000))}
    return found
