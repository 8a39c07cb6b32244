"""Whether suggestions leave everyday files right: `python -m tests.quality.everyday`.

A real server with the real model is asked at each position, as by a key press (or as while typing, with
`--automatic`), and each answer is judged in its document. `--server` takes the command of another server.
With `--answers FILE` an interrupted run goes on where it ended: `--minutes` ends one in time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lsp_server.commands.language_client import AUTOMATIC, INVOKED, LanguageClient
from lsp_server.commands.player import running_server, wait_until_ready
from lsp_server.scripted_typing.screen import Buffer
from tests.benchmarks.json_lines import JsonLines
from tests.benchmarks.released_sources import released_sources
from tests.quality.everyday.cases import CursorCase, random_cases, written_cases
from tests.quality.everyday.judging import Accepted, faults, reason_not_parsed

_MAX_SHOWN = 160


class Results:
    """Counts by kind and by language, and every spoiled document."""

    def __init__(self) -> None:
        self.num_cases: Counter[str] = Counter()
        self.num_empty: Counter[str] = Counter()
        self.num_right: Counter[str] = Counter()
        self.by_fault: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, case: CursorCase, accepted: Accepted) -> list[str]:
        """Judge one answer; returns its faults."""
        found = faults(case, accepted)
        for key in (case.kind, case.language):
            self.num_cases[key] += 1
            self.num_empty[key] += not accepted.text
            self.num_right[key] += not found
            self.by_fault[key].update(found)
        return found

    def row(self, key: str) -> dict[str, Any]:
        """The line of the table for a kind or a language."""
        return {
            "name": key,
            "num_cases": self.num_cases[key],
            "right": round(self.num_right[key] / self.num_cases[key], 3),
            "num_empty": self.num_empty[key],
            "faults": dict(self.by_fault[key]),
        }


class Answers:
    """The answers so far by position, in a file if there is one. Owns the file."""

    def __init__(self, path: Path | None) -> None:
        self._lines = JsonLines(path)
        self._found = {row["key"]: Accepted(row["text"], row["num_replaced"]) for row in self._lines.objects}

    def get(self, case: CursorCase) -> Accepted | None:
        """Return the answer at a position; None if it was not asked."""
        return self._found.get(case.key)

    def add(self, case: CursorCase, accepted: Accepted) -> None:
        """Keep one answer."""
        self._found[case.key] = accepted
        self._lines.add({"key": case.key, **asdict(accepted)})


async def ask_all(
    cases: Sequence[CursorCase],
    root: Path,
    server: Sequence[str],
    target: str,
    trigger: int,
    answers: Answers,
    until_s: float,
) -> None:
    """Open each document without an answer in one server and ask at its cursor, until a time of the clock."""
    settings = {"target": target, "deadlineMs": 0 if trigger == INVOKED else 100}
    async with running_server(root, settings=settings, command=server) as client:
        await wait_until_ready(client)
        for number, case in enumerate(cases):
            if time.monotonic() >= until_s:
                return
            uri = (root / f"case{number}" / Path(case.file).name).as_uri()
            answers.add(case, await _answer_at(client, uri, case, trigger))


async def _answer_at(client: LanguageClient, uri: str, case: CursorCase, trigger: int) -> Accepted:
    position = Buffer(case.prefix, "").position
    client.open(uri, case.prefix + case.suffix, language=case.language)
    answer = await client.ask(uri, position, trigger)
    client.close(uri)
    items = (answer or {}).get("items", [])
    return _accepted(items[0], case, position["character"]) if items else Accepted("")


def _accepted(item: dict[str, Any], case: CursorCase, column: int) -> Accepted:
    """The inserted text from the cursor on, and how much of the document after the cursor it replaces."""
    text = item["insertText"]
    text = text if isinstance(text, str) else text["value"]
    span = item.get("range")
    if span is None:
        return Accepted(text)
    before = case.prefix[case.prefix.rfind("\n") + 1 :]
    start = span["start"]["character"]
    typed = before.encode("utf-16-le")[2 * start :].decode("utf-16-le")
    rest = case.suffix.partition("\n")[0].encode("utf-16-le")
    replaced = rest[: 2 * (span["end"]["character"] - column)].decode("utf-16-le")
    return Accepted(text.removeprefix(typed), len(replaced))


def print_case(case: CursorCase, accepted: Accepted, found: Sequence[str]) -> None:
    """Print a spoiled position as a JSON line."""
    line = case.prefix[case.prefix.rfind("\n") + 1 :]
    shown = {
        "kind": case.kind,
        "language": case.language,
        "file": case.file,
        "line": case.prefix.count("\n"),
        "before": line[-_MAX_SHOWN:],
        "written": accepted.text[: 4 * _MAX_SHOWN],
        "num_replaced": accepted.num_replaced,
        "after": case.suffix[:_MAX_SHOWN],
        "truth": case.truth[:_MAX_SHOWN],
        "faults": list(found),
    }
    sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")


def judge_all(cases: Sequence[CursorCase], answers: Answers, *, prints_all: bool) -> Results:
    """Judge the answers that there are; print each that spoils its file, or each with `prints_all`."""
    results = Results()
    for case in cases:
        if (accepted := answers.get(case)) is not None:
            found = results.add(case, accepted)
            if found or prints_all:
                print_case(case, accepted, found)
    return results


def print_table(results: Results, keys: Sequence[str], num_missing: int) -> None:
    """Print a JSON line for each kind or language, and one on what the table leaves out."""
    for key in keys:
        if results.num_cases[key]:
            sys.stdout.write(json.dumps(results.row(key)) + "\n")
    reason = reason_not_parsed()
    checked = f"no: {reason}" if reason else "yes"
    sys.stdout.write(json.dumps({"num_not_asked": num_missing, "files_are_parsed": checked}) + "\n")


def add_positions(parser: argparse.ArgumentParser, num_random: int) -> None:
    """The options that choose positions."""
    parser.add_argument("--random", type=int, default=num_random, help="positions drawn from example files")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--kind", default="", help="only kinds that begin with this")
    parser.add_argument("--target", default="qwen2.5-coder-0.5b")


def chosen(asked: argparse.Namespace) -> list[CursorCase]:
    """The positions that the options choose."""
    drawn = random_cases(released_sources("examples"), asked.random, asked.seed)
    return [case for case in written_cases() + drawn if case.kind.startswith(asked.kind)]


def main() -> None:
    """Print every spoiled position as a JSON line, then the table by kind and by language."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_positions(parser, num_random=260)
    parser.add_argument("--automatic", action="store_true", help="ask as while typing, with default settings")
    parser.add_argument("--all", action="store_true", help="print right answers too")
    parser.add_argument("--server", default=f"{sys.executable} -m lsp_server", help="the server's command")
    parser.add_argument("--answers", type=Path, help="keep answers in this file; ask only where it has none")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no position later; 0 only judges")
    asked = parser.parse_args()
    cases, answers = chosen(asked), Answers(asked.answers)
    missing = [case for case in cases if answers.get(case) is None]
    trigger = AUTOMATIC if asked.automatic else INVOKED
    until_s = time.monotonic() + asked.minutes * 60
    if missing and asked.minutes > 0:
        with tempfile.TemporaryDirectory() as home:
            root, server = Path(home).resolve(), shlex.split(asked.server)
            asyncio.run(ask_all(missing, root, server, asked.target, trigger, answers, until_s))
    results = judge_all(cases, answers, prints_all=asked.all)
    kinds, languages = ({getattr(case, name) for case in cases} for name in ("kind", "language"))
    num_missing = sum(answers.get(case) is None for case in cases)
    print_table(results, [*sorted(kinds), *sorted(languages)], num_missing)


if __name__ == "__main__":
    main()
