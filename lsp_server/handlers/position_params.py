"""Positions in what clients send. Knows the protocol's shapes, and nothing of what is done there."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from lsp_server.workspace.documents import LineColumn


def line_column_of(position: types.Position) -> LineColumn:
    """A position of the protocol as line and column, in the client's units."""
    return position.line, position.character


def read_position(params: Any) -> tuple[str, LineColumn]:
    """The URI and the place in `{textDocument: {uri}, position: {line, character}}`.

    Raises LookupError where a part is missing, TypeError, which says so, where one is of another type.
    """
    try:
        position = params["position"]
        uri, line, column = params["textDocument"]["uri"], position["line"], position["character"]
    except (TypeError, KeyError) as error:
        raise LookupError(params) from error
    if not (isinstance(uri, str) and isinstance(line, int) and isinstance(column, int)):
        raise TypeError("uri is a string; line and character are integers.")
    return uri, (max(0, line), max(0, column))
