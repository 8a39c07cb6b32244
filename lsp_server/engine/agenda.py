"""What the users of one engine want of it, and in which order: the newest request first, nobody left out.

Owns the waiting work. Must not know threads, nor how any of it is done.
"""

from __future__ import annotations

from collections import deque

from completion_engine.request import CompletionRequest
from lsp_server.engine.work import EngineJob, EngineUser

# A request that others overtook for this long goes first: it is answered though somebody types without end.
MAX_OVERTAKEN_S = 0.3


class Agenda:
    """At most one request of each user, the one place that was looked at last, what was opened and closed."""

    def __init__(self) -> None:
        self._jobs: dict[EngineUser, EngineJob] = {}
        self._expected: tuple[EngineUser, CompletionRequest] | None = None
        self._closed: deque[str] = deque()
        self._languages: dict[str, None] = {}

    @property
    def has_jobs(self) -> bool:
        """Whether a request waits."""
        return bool(self._jobs)

    @property
    def is_expecting(self) -> bool:
        """Whether a request may come soon."""
        return self._expected is not None

    def submit(self, job: EngineJob) -> None:
        """Take a user's request in place of the one that still waits, and of the one that was expected."""
        self._drop_expected(job.user)
        self._jobs.pop(job.user, None)
        self._jobs[job.user] = job

    def expect(self, user: EngineUser, request: CompletionRequest) -> None:
        """A user may soon make this request."""
        self._expected = (user, request)

    def open(self, language: str) -> None:
        """A document of this language is open."""
        self._languages[language] = None

    def close(self, document: str) -> None:
        """A document is closed."""
        self._closed.append(document)

    def leave(self, user: EngineUser) -> None:
        """A user has gone: nothing that it asked for is wanted."""
        self._drop_expected(user)
        self._jobs.pop(user, None)

    def take_closed(self) -> str | None:
        """The next closed document."""
        return self._closed.popleft() if self._closed else None

    def take_language(self) -> str | None:
        """The next language of which a document was opened."""
        language = next(iter(self._languages), None)
        if language is not None:
            del self._languages[language]
        return language

    def take_job(self, now_s: float) -> EngineJob | None:
        """The next request; `now_s` on the clock of `EngineJob.submitted_s`."""
        if not self._jobs:
            return None
        oldest, newest = next(iter(self._jobs)), next(reversed(self._jobs))
        is_overdue = now_s - self._jobs[oldest].submitted_s > MAX_OVERTAKEN_S
        return self._jobs.pop(oldest if is_overdue else newest)

    def take_all(self) -> list[EngineJob]:
        """Every request that waits."""
        jobs, self._jobs = list(self._jobs.values()), {}
        return jobs

    def take_expected(self) -> CompletionRequest | None:
        """The request that may come soon."""
        expected, self._expected = self._expected, None
        return expected[1] if expected else None

    def _drop_expected(self, user: EngineUser) -> None:
        if self._expected is not None and self._expected[0] is user:
            self._expected = None
