"""The waiting requests of one engine's users: the newest of each user, served in turns, and a prefetch."""

from __future__ import annotations

from completion_engine.request import CompletionRequest
from lsp_server.engine.engine_types import CloseJob, CompletionJob, EditJob, EngineUser, Job, PrefetchJob


class RequestQueue:
    """At most one request per user, one prefetch, and the documents that were closed.

    The user that was served longest ago is next, and a new user is last. So a request waits for at most one
    request of each other user.
    """

    def __init__(self) -> None:
        self._jobs: dict[EngineUser, CompletionJob] = {}
        self._turns: dict[EngineUser, int] = {}
        self._num_turns = 0
        self._edits: dict[EngineUser, EditJob] = {}
        self.next_prefetch: PrefetchJob | None = None
        self._closed: dict[str, None] = {}
        self._known: dict[EngineUser, set[str]] = {}  # documents that the engine may hold data of

    @property
    def has_jobs(self) -> bool:
        """Whether a request waits."""
        return bool(self._jobs)

    @property
    def is_shared(self) -> bool:
        """Whether several users have sent requests, so that one may type while another pauses."""
        return len(self._known) > 1

    def submit(self, job: Job) -> None:
        """Add a job.

        A completion or an edit replaces its user's older one, and a completion also ends its user's prefetch.
        A prefetch replaces any other, except that one without `writes` never replaces another user's with it.
        """
        match job:
            case CompletionJob():
                self._drop_prefetch(job.user)
                self._know(job.user, job.request)
                self._jobs[job.user] = job
                if job.user not in self._turns:
                    self._turns[job.user] = self._next_turn()
            case PrefetchJob():
                self._know(job.user, job.request)
                waiting = self.next_prefetch
                if waiting is None or waiting.user is job.user or job.writes or not waiting.writes:
                    self.next_prefetch = job
            case EditJob():
                self._edits[job.user] = job
            case CloseJob(document):
                for known in self._known.values():
                    if document in known:
                        known.discard(document)
                        self._closed[document] = None
                if self.next_prefetch is not None and self.next_prefetch.request.document == document:
                    self.next_prefetch = None

    def submit_again(self, job: CompletionJob) -> None:
        """Queue a request for a turn after the other users, unless its user has a newer one or has gone."""
        if job.user in self._turns and job.user not in self._jobs:
            self._jobs[job.user] = job
            self._turns[job.user] = self._next_turn()

    @property
    def has_edits(self) -> bool:
        """Whether an edit request can be served: one waits, and no completion is to be written first."""
        return bool(self._edits) and not (self.next_prefetch and self.next_prefetch.writes)

    def take_edit(self) -> EditJob:
        """Remove and return the edit request that has waited longest. Raises KeyError if there is none."""
        return self._edits.pop(next(iter(self._edits)))

    def put_back(self, job: EditJob) -> None:
        """Queue an interrupted edit request again, unless its user has a newer one."""
        self._edits.setdefault(job.user, job)

    def leave(self, user: EngineUser) -> None:
        """Drop everything of a user that has gone, and close its documents."""
        for document in self._known.pop(user, ()):
            self._closed[document] = None
        self._drop_prefetch(user)
        self._jobs.pop(user, None)
        self._edits.pop(user, None)
        self._turns.pop(user, None)

    def take_closed(self) -> str | None:
        """Remove and return the next closed document."""
        document = next(iter(self._closed), None)
        if document is not None:
            del self._closed[document]
        return document

    def take_job(self) -> CompletionJob | None:
        """Remove and return the request of the user whose turn it is."""
        if not self._jobs:
            return None
        user = min(self._jobs, key=self._turns.__getitem__)
        self._turns[user] = self._next_turn()
        return self._jobs.pop(user)

    def take_all(self) -> list[CompletionJob | EditJob]:
        """Remove and return all requests that wait for an answer."""
        jobs: list[CompletionJob | EditJob] = [*self._jobs.values(), *self._edits.values()]
        self._jobs, self._edits = {}, {}
        return jobs

    def take_prefetch(self) -> PrefetchJob | None:
        """Remove and return the predicted request."""
        prefetch, self.next_prefetch = self.next_prefetch, None
        return prefetch

    def _next_turn(self) -> int:
        self._num_turns += 1
        return self._num_turns

    def _know(self, user: EngineUser, request: CompletionRequest) -> None:
        self._known.setdefault(user, set()).add(request.document)

    def _drop_prefetch(self, user: EngineUser) -> None:
        if self.next_prefetch is not None and self.next_prefetch.user is user:
            self.next_prefetch = None
