"""The answers of a recorded server, as the documents that its suggestions would make.

Owns the replay of document changes. Columns count characters, so the typed text in these tests stays within
the basic plane.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.editors.recorder import Heard


@dataclass(frozen=True, slots=True)
class Answer:
    """One suggestion: the document it was asked for, and the document it would make.

    `line` is the line asked about; both times are milliseconds since the epoch.
    """

    document: str
    reads: str
    line: int
    asked_at_ms: float
    answered_at_ms: float

    @property
    def lines(self) -> list[str]:
        """The lines that the suggestion would make, from the one asked about to the end."""
        return self.reads.split("\n")[self.line :]


def answers(heard: Iterable[Heard]) -> Iterator[Answer]:
    """Every suggestion that was answered, in order."""
    for request, document, response in _exchanges(heard):
        for item in (response.message.get("result") or {}).get("items", ()):
            yield Answer(
                document=document,
                reads=_edited(document, item["range"], item["insertText"]),
                line=request.message["params"]["position"]["line"],
                asked_at_ms=request.at_ms,
                answered_at_ms=response.at_ms,
            )


def owes_nothing(heard: Iterable[Heard]) -> bool:
    """Whether every request for suggestions was answered, be it with an error."""
    said = [one.message for one in heard]
    asked = {message["id"] for message in said if message.get("method") == "textDocument/inlineCompletion"}
    return asked <= {message["id"] for message in said if "id" in message and "method" not in message}


def _exchanges(heard: Iterable[Heard]) -> Iterator[tuple[Heard, str, Heard]]:
    """Each request for suggestions, the document as it was then, and the response."""
    documents: dict[str, str] = {}
    asked: dict[Any, tuple[Heard, str]] = {}
    for one in heard:
        message = one.message
        params = message.get("params") or {}
        match message.get("method"):
            case "textDocument/didOpen":
                documents[params["textDocument"]["uri"]] = params["textDocument"]["text"]
            case "textDocument/didChange":
                uri = params["textDocument"]["uri"]
                for change in params["contentChanges"]:
                    documents[uri] = _edited(documents[uri], change.get("range"), change["text"])
            case "textDocument/inlineCompletion":
                asked[message["id"]] = (one, documents[params["textDocument"]["uri"]])
            case None if not one.from_editor and message.get("id") in asked:
                request, document = asked.pop(message["id"])
                yield request, document, one


def _edited(text: str, span: dict[str, Any] | None, new: str) -> str:
    if span is None:
        return new
    start, end = (_offset(text, span[side]) for side in ("start", "end"))
    return text[:start] + new + text[end:]


def _offset(text: str, place: dict[str, int]) -> int:
    lines = text.split("\n")[: place["line"]]
    return sum(len(line) + 1 for line in lines) + place["character"]
