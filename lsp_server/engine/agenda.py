"""What the users of one engine want of it, and in which order: of each its newest request, all in turns.

Owns the waiting work. Must not know threads, nor how any of it is done.
"""

from __future__ import annotations

from typing import NamedTuple

from completion_engine.request import CompletionRequest
from lsp_server.engine.work import EngineJob, EngineUser


class Expectation(NamedTuple):
    """A request that may come soon, and whether its text is to be written before it comes.

    Work for it begins at `from_s`, in `time.perf_counter()` seconds.
    """

    request: CompletionRequest
    writes: bool = False
    from_s: float = 0.0


class Agenda:
    """At most one request of each user, the one place that was looked at last, what was opened and closed.

    Who was served longest ago is next, and who is new comes behind all: nobody waits for more than one
    request of each other user, however many they make.
    """

    def __init__(self) -> None:
        self._jobs: dict[EngineUser, EngineJob] = {}
        self._turns: dict[EngineUser, int] = {}
        self._num_turns = 0
        self._expected: tuple[EngineUser, Expectation] | None = None
        self._closed: dict[str, None] = {}
        self._known: dict[EngineUser, set[str]] = {}  # documents that the engine may keep something of
        self._languages: dict[str, None] = {}

    @property
    def has_jobs(self) -> bool:
        """Whether a request waits."""
        return bool(self._jobs)

    @property
    def is_shared(self) -> bool:
        """Whether several users have asked, so that one may ask while another pauses."""
        return len(self._known) > 1

    @property
    def expected(self) -> Expectation | None:
        """The request that may come soon."""
        return self._expected[1] if self._expected else None

    def submit(self, job: EngineJob) -> None:
        """Take a user's request in place of the one that still waits, and of the one that was expected."""
        self._drop_expected(job.user)
        self._know(job.user, job.request)
        self._jobs[job.user] = job
        if job.user not in self._turns:
            self._turns[job.user] = self._next_turn()

    def expect(self, user: EngineUser, expectation: Expectation) -> None:
        """A user may soon make this request. No other's place comes before text that is to be written."""
        self._know(user, expectation.request)
        by, waiting = self._expected or (user, expectation)
        if by is user or expectation.writes or not waiting.writes:
            self._expected = (user, expectation)

    def open(self, language: str) -> None:
        """A document of this language is open."""
        self._languages[language] = None

    def close(self, document: str) -> None:
        """A document is closed: nothing is wanted for it any more."""
        for known in self._known.values():
            if document in known:
                known.discard(document)
                self._closed[document] = None
        if self.expected is not None and self.expected.request.document == document:
            self._expected = None

    def leave(self, user: EngineUser) -> None:
        """A user has gone: nothing that it asked for is wanted, and its documents are closed."""
        for document in self._known.pop(user, ()):
            self._closed[document] = None
        self._drop_expected(user)
        self._jobs.pop(user, None)
        self._turns.pop(user, None)

    def take_closed(self) -> str | None:
        """The next closed document."""
        document = next(iter(self._closed), None)
        if document is not None:
            del self._closed[document]
        return document

    def take_language(self) -> str | None:
        """The next language of which a document was opened."""
        language = next(iter(self._languages), None)
        if language is not None:
            del self._languages[language]
        return language

    def take_job(self) -> EngineJob | None:
        """The request of the user whose turn it is."""
        if not self._jobs:
            return None
        user = min(self._jobs, key=self._turns.__getitem__)
        self._turns[user] = self._next_turn()
        return self._jobs.pop(user)

    def take_all(self) -> list[EngineJob]:
        """Every request that waits."""
        jobs, self._jobs = list(self._jobs.values()), {}
        return jobs

    def take_expected(self) -> Expectation | None:
        """The request that may come soon, which is waited for no more."""
        expected, self._expected = self.expected, None
        return expected

    def _next_turn(self) -> int:
        self._num_turns += 1
        return self._num_turns

    def _know(self, user: EngineUser, request: CompletionRequest) -> None:
        self._known.setdefault(user, set()).add(request.document)

    def _drop_expected(self, user: EngineUser) -> None:
        if self._expected is not None and self._expected[0] is user:
            self._expected = None
