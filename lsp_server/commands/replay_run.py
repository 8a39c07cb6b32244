"""One replay of some files: which stretch of each is typed, through which server, and the report of it all.

Owns the course of a measurement. Must not know how it is asked for or shown.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion_engine.errors import UserError
from completion_engine.request import MemoryWish, Multiline, Progress
from lsp_server.commands.baseline import Baseline, Comparison
from lsp_server.commands.player import Answer, Player, Target
from lsp_server.commands.replay_report import summary
from lsp_server.commands.server_process import running_server, wait_until_ready
from lsp_server.commands.source_file import language_id, read_source, repository_of
from lsp_server.commands.typing_plan import TypingPlan, line_start, plan_typing
from lsp_server.commands.typist import Typist

# Where typing begins in a file: there is something above to go by, as in most of a day's work.
START_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Options:
    """What is typed, and how.

    About `num_keystrokes` in all files together; from line `start_line` on, counted from 0, or from
    `START_SHARE` of each file; `pace_ms` 0 waits for each answer. An empty `target` is the user's own;
    `is_plain` switches the drafters off. `multiline` and `deadline_ms` are settings, the user's own where
    they are not given; so are `eagerness`, `repository_memory`, `patience_ms` and `remote`. What an index
    leaves out stays here, so servers are only asked without one.
    """

    num_keystrokes: int = 400
    start_line: int | None = None
    pace_ms: float = 0.0
    seed: int = 0
    target: str = ""
    is_plain: bool = False
    compare: bool = False
    multiline: Multiline | None = None
    deadline_ms: float | None = None
    eagerness: float | None = None
    repository_memory: MemoryWish | None = None
    patience_ms: float | None = None
    remote: Mapping[str, str] | None = None
    has_index: bool = True

    @property
    def settings(self) -> dict[str, Any]:
        """What the servers are told beside the user's own settings."""
        given: dict[str, Any] = {
            "target": self.target or None,
            "drafters": [] if self.is_plain else None,
            "multiline": self.multiline,
            "deadlineMs": self.deadline_ms,
            "eagerness": self.eagerness,
            "repositoryMemory": self.repository_memory,
            "patienceMs": self.patience_ms,
            "remote": self.remote,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """One file to type."""

    path: Path
    plan: TypingPlan


async def replay_files(files: Sequence[Path], options: Options, report: Progress) -> dict[str, Any]:
    """Type the files through servers of their own, one for each repository, and report what was felt.

    The typed files are no part of the index, which is built for this run alone: nothing can be read off
    that the person has not typed yet. Raises SlipstreamError.
    """
    jobs = [ReplayJob(path.resolve(), planned(path, options, len(files))) for path in files]
    answers: list[Answer] = []
    comparison = Comparison()
    servers: Counter[str] = Counter()
    for root in dict.fromkeys(repository_of(job.path) for job in jobs):
        mine = [job for job in jobs if repository_of(job.path) == root]
        answers += await _replay_repository(root, mine, options, report, comparison)
        servers[str(root)] = len(mine)
    result = summary(
        answers,
        num_chars=sum(job.plan.num_chars for job in jobs),
        num_keys=sum(len(job.plan.strokes) for job in jobs),
    )
    first = next((answer.stats for answer in answers if answer.stats), {})
    about = {"target": first.get("target", ""), "device": first.get("device", ""), "files": dict(servers)}
    return {**about, **result, **({"compare": comparison.as_dict()} if options.compare else {})}


def planned(path: Path, options: Options, num_files: int) -> TypingPlan:
    """The stretch of a file that is typed, whole lines, and how. Raises UserError when there is none."""
    text = read_source(path).replace("\r\n", "\n").replace("\r", "\n")
    line = int(text.count("\n") * START_SHARE) if options.start_line is None else options.start_line
    start = line_start(text, line)
    end = stretch_end(text, start, max(1, options.num_keystrokes // num_files))
    if not text[start:end].strip():
        raise UserError(
            f"There is nothing to type in {path} from line {line} on.",
            advice="Choose another --start-line, or a longer file.",
        )
    return plan_typing(text, start=start, end=end, seed=options.seed)


def stretch_end(text: str, start: int, num_chars: int) -> int:
    """The end of the last line that ends within `num_chars` after `start`; at least one line's."""
    if start + num_chars >= len(text):
        return len(text)
    end = text.rfind("\n", start + 1, start + num_chars + 1)
    if end < 0:
        end = text.find("\n", start + 1)
    return end if end >= 0 else len(text)


async def _replay_repository(
    root: Path, jobs: Sequence[ReplayJob], options: Options, report: Progress, comparison: Comparison
) -> list[Answer]:
    typed = [f"/{job.path.relative_to(root)}" for job in jobs]
    index = {"exclude": typed} if options.has_index else {"enabled": False}
    settings = {**options.settings, "index": index}
    answers: list[Answer] = []
    with ExitStack() as stack:
        index_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="slipstream-replay-"))
        async with running_server(root, settings=settings, env={"SLIPSTREAM_INDEX_DIR": index_dir}) as client:
            stats = await wait_until_ready(client, report)
            baseline = Baseline.load(stats["engine"], report) if options.compare else None
            for job in jobs:
                done = _Progress(report, job)

                async def watch(answer: Answer, typist: Typist, done: _Progress = done) -> None:
                    done.show(typist)
                    if baseline is not None:
                        await comparison.consider(baseline, answer, typist)

                target = Target(job.path.as_uri(), language_id(job.path))
                player = Player(client, target, job.plan, pace_ms=options.pace_ms, watch=watch)
                answers += await player.play()
    return answers


class _Progress:
    """How far a file is typed."""

    def __init__(self, report: Progress, job: ReplayJob) -> None:
        self._report = report
        self._job = job

    def show(self, typist: Typist) -> None:
        """Progress the characters that are in the file."""
        plan = self._job.plan
        self._report(f"Typing {self._job.path.name}", typist.offset - plan.start, plan.num_chars)
