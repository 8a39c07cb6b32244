"""The exception tree. Every error names its cause and what to do about it.

SlipstreamError
├── UserError      what was asked cannot be done: a setting, a path, an unknown id
├── MachineError   the machine cannot do it now: no network, no space, no permission, too little memory
│   └── RemoteError    a team's servers cannot answer now
└── DataError      the data is wrong: a hash that does not match, a truncated file, a foreign tokenizer

Anything else that escapes is a bug of ours.
"""

from __future__ import annotations

from typing import Literal

RemoteFault = Literal[
    "busy",
    "refused",
    "unavailable",
    "unreachable",
    "silent",
    "truncated",
    "invalid",
    "certificate",
    "tokenizer",
]


class SlipstreamError(Exception):
    """Base of all errors that are raised on purpose.

    `message` states what happened, `advice` what to do about it.
    """

    fault = "slipstream"

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".strip()


class UserError(SlipstreamError):
    """A request that cannot be fulfilled as it is."""

    fault = "request"


class MachineError(SlipstreamError):
    """The machine cannot do it now: network, disk, permissions, memory."""

    fault = "machine"


class RemoteError(MachineError):
    """A team's servers cannot answer now, because of `kind`; `retry_s` is the time before a new attempt.

    No new process would help.
    """

    fault = "servers"

    def __init__(self, kind: RemoteFault, message: str, *, advice: str = "", retry_s: float = 0.0) -> None:
        super().__init__(message, advice=advice)
        self.kind: RemoteFault = kind
        self.retry_s = retry_s

    @property
    def is_lasting(self) -> bool:
        """Whether the same request would fail again in a moment."""
        return self.kind in {"refused", "silent", "certificate", "tokenizer"}


class DataError(SlipstreamError):
    """A file or an answer from elsewhere is not what it must be."""

    fault = "data"
