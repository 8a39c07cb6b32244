"""What became of a suggestion: shown, accepted, accepted in part. Counted here and sent nowhere.

These notifications come from clients of several completion servers, so their shape is not relied on.
"""

from __future__ import annotations

from typing import Any

from lsp_server.server import SlipstreamServer
from lsp_server.session import Record


def did_show_completion(server: SlipstreamServer, _params: Any) -> None:
    """The client put a suggestion on the screen."""
    server.session.measurements.num_shown += 1


def did_partially_accept_completion(server: SlipstreamServer, params: Any) -> None:
    """The user took the first `acceptedLength` UTF-16 units of a suggestion."""
    measurements = server.session.measurements
    measurements.num_partially_accepted += 1
    length = params.get("acceptedLength") if isinstance(params, dict) else None
    if isinstance(length, int) and length > 0:
        measurements.num_accepted_chars += length


def did_focus(server: SlipstreamServer, _params: Any) -> None:
    """The user looks at another document."""
    server.session.measurements.num_focused += 1


def accepted(server: SlipstreamServer, *arguments: Any) -> None:
    """The user took a whole suggestion; the first argument is its id."""
    measurements = server.session.measurements
    measurements.num_accepted += 1
    record: Record | None = server.session.record(arguments[0]) if arguments else None
    if record is not None:
        measurements.num_accepted_chars += len(record.text)
