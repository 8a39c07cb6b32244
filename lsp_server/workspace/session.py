"""The state of one editor: open documents, folders, settings, and recent suggestions. Event loop only."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path

from completion_engine.request import Completion
from lsp_server.workspace.documents import (
    CHARS_OF_LINE,
    Document,
    DocumentSnapshot,
    LineColumn,
    PositionEncoding,
    index_of,
    plain_newlines,
    typed_word,
)
from lsp_server.workspace.edit_log import EditLog
from lsp_server.workspace.locations import DocumentLocation, FileIdentity, WorkspaceFolders, locate
from lsp_server.workspace.measurements import Measurements
from lsp_server.workspace.notebooks import Notebooks
from lsp_server.workspace.proposals import Proposals
from lsp_server.workspace.settings import IndexSettings, Settings
from lsp_server.workspace.settings_layers import Configuration

NUM_RECORDS = 64

# The most text that a client may have the server hold, in characters; each line and document counts for some
# more.
MAX_HELD_CHARS = 64 * 1024 * 1024
CHARS_OF_DOCUMENT = 4096

# The most text of unserved documents that is kept, for when they can be served.
MAX_WAITING_CHARS = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CompletionRecord:
    """A requested completion: its cursor position and its result.

    `text` is what was returned; `outcome` is the event that prevented it, if any. `is_triggered` is False if
    the settings suppress completions there. `rank` is 0 for the best candidate at a cursor. The user accepted
    the first `num_accepted_chars` of `text` so far.
    """

    id: str
    snapshot: DocumentSnapshot
    completion: Completion
    text: str = ""
    outcome: str = ""
    is_triggered: bool = True
    rank: int = 0
    num_accepted_chars: int = 0


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggestion fitted to the present document: `text`, with `\n` line ends, replaces `num_replaced`
    characters right of (line, column).

    `typed` is the beginning of the suggestion that the user typed since the request; it is left of that
    position.
    """

    id: str
    document: Document
    line: int
    column: int
    text: str
    num_replaced: int
    typed: str = ""


@dataclass(slots=True)
class Session:
    """One editor's state. `focused_uri` is the document that the user looks at.

    `too_large` are open documents without suggestions: too large themselves, or beyond the total.
    `unidentified` documents get no suggestions until the disk reports which files they are. `window` is the
    editor's number among those that use the same engine.
    """

    window: int = 0
    encoding: PositionEncoding = "utf-16"
    documents: dict[str, Document] = field(default_factory=dict)
    too_large: dict[str, Document] = field(default_factory=dict)
    folders: WorkspaceFolders = field(default_factory=WorkspaceFolders)
    focused_uri: str = ""
    configuration: Configuration = field(default_factory=Configuration)
    measurements: Measurements = field(default_factory=Measurements)
    notebooks: Notebooks = field(default_factory=Notebooks)
    unidentified: set[str] = field(default_factory=set)
    edits: EditLog = field(default_factory=EditLog)
    proposals: Proposals = field(default_factory=Proposals)
    _records: OrderedDict[str, CompletionRecord] = field(default_factory=OrderedDict)
    _num_records: int = 0
    _locations: dict[str, DocumentLocation] = field(default_factory=dict)
    _held_chars: dict[str, int] = field(default_factory=dict)
    _num_held_chars: int = 0
    _waiting_chars: dict[str, int] = field(default_factory=dict)

    def put(self, document: Document) -> None:
        """Add an open document with this content; it is served unless it is too large or beyond the total."""
        uri = document.uri
        location, is_unidentified = self.location_of(uri), uri in self.unidentified
        self.drop(uri)
        if is_unidentified:
            self.unidentified.add(uri)
        name_chars = len(uri) + len(document.language) + CHARS_OF_DOCUMENT
        text_chars = document.num_chars + CHARS_OF_LINE * len(document.lines)
        if not document.is_too_large and self._has_room(name_chars + text_chars):
            self.documents[uri] = document
            self._hold(location, name_chars + text_chars)
        elif self._has_room(name_chars):
            if sum(self._waiting_chars.values()) + text_chars > MAX_WAITING_CHARS:
                document.let_go()
                text_chars = 0
            self.too_large[uri] = document
            self._waiting_chars[uri] = text_chars
            self._hold(location, name_chars)

    def readmit(self) -> list[DocumentLocation]:
        """Serve the documents that were beyond the total and now fit; return their locations."""
        waiting = [document for document in self.too_large.values() if not document.is_too_large]
        for document in waiting:
            self.put(document)
        return [self.location_of(found.uri) for found in waiting if found.uri in self.documents]

    def open_document(self, uri: str) -> Document | None:
        """Return a document that the client has opened, served or not."""
        return self.documents.get(uri) or self.too_large.get(uri)

    def version_of(self, uri: str) -> int | None:
        """Return the version of a document that is open and served; None for another."""
        document = self.documents.get(uri)
        return document.version if document is not None else None

    def drop(self, uri: str) -> None:
        """Remove a document that is closed or about to be replaced."""
        self.documents.pop(uri, None)
        self.too_large.pop(uri, None)
        self._waiting_chars.pop(uri, None)
        self.unidentified.discard(uri)
        self._locations.pop(uri, None)
        self._num_held_chars -= self._held_chars.pop(uri, 0)

    def follows(self, uri: str) -> bool:
        """Return whether the client has opened this document and not closed it."""
        return uri in self._locations

    def _has_room(self, num_chars: int) -> bool:
        return self._num_held_chars + num_chars <= MAX_HELD_CHARS

    def _hold(self, location: DocumentLocation, num_chars: int) -> None:
        self._locations[location.uri] = location
        self._held_chars[location.uri] = num_chars
        self._num_held_chars += num_chars

    def location_of(self, uri: str) -> DocumentLocation:
        """Return the location of a document, found when it was opened or when folders last changed."""
        return self._locations.get(uri) or locate(uri, self.folders.real_paths)

    def relocate(self) -> list[DocumentLocation]:
        """Locate all open documents in the present folders; return those whose location changed."""
        before, folders = self._locations, self.folders.real_paths
        self._locations = {uri: locate(uri, folders, found.identity) for uri, found in before.items()}
        return [location for uri, location in self._locations.items() if location != before[uri]]

    def identify(self, uri: str, identity: FileIdentity) -> bool:
        """Store the file of an open document; return True if it is another one than before."""
        self.unidentified.discard(uri)
        before = self._locations[uri]
        if before.identity == identity:  # `relocate` has followed the folders since
            return False
        self._locations[uri] = locate(uri, self.folders.real_paths, identity)
        return self._locations[uri] != before

    def twin_of(self, location: DocumentLocation) -> DocumentLocation | None:
        """Return another open document that is the same file."""
        if location.file is None:
            return None
        others = (found for found in self._locations.values() if found.uri != location.uri)
        return next((found for found in others if found.file == location.file), None)

    @property
    def followed(self) -> tuple[str, ...]:
        """Return the URIs that the client has opened and not closed."""
        return tuple(self._locations)

    def has_documents_in(self, folder: Path) -> bool:
        """Return whether the rules of a folder apply to an open document."""
        return any(folder in found.rule_folders for found in self._locations.values())

    def settings_for(self, uri: str) -> Settings:
        """Return the settings for a document."""
        return self.configuration.of(*self.location_of(uri).rule_folders)

    def index_settings(self, folder: Path) -> IndexSettings:
        """Return how a workspace folder is indexed."""
        around = self.folders.around.get(folder, ())
        settings, own = self.configuration.of(folder, *around).index, self.configuration.of(folder).index
        is_enabled = settings.enabled and folder not in self.folders.unread
        return settings.model_copy(update={"enabled": is_enabled, "exclude": own.exclude})

    def exclude_around(self, folder: Path) -> tuple[tuple[Path, tuple[str, ...]], ...]:
        """Return the patterns of the settings files around a workspace folder, by their folders."""
        around = self.folders.around.get(folder, ())
        return tuple((outer, self.configuration.of(outer).index.exclude) for outer in around)

    def refusal_of_focused(self) -> str:
        """Return the rule that suppresses automatic suggestions in the focused document, or an empty string.

        While the disk is being asked about the document, there is no rule yet.
        """
        document = self.documents.get(self.focused_uri)
        if document is None or document.uri in self.unidentified:
            return ""
        return self.refusal(document.uri, document.language, is_invoked=False)

    def refusal(self, uri: str, language: str, *, is_invoked: bool) -> str:
        """Return the rule that suppresses completions in a document, or an empty string."""
        location = self.location_of(uri)
        if location.is_secret:
            return "secret-file"
        if uri in self.unidentified or not self.folders.unread.isdisjoint(location.rule_folders):
            return "unread-folder"
        return self.settings_for(uri).refusal(language, is_invoked=is_invoked)

    def recent_scope(self, location: DocumentLocation, *, is_shared: bool) -> str:
        """Return the draft scope: this window's in the document's folder, or else the document's own."""
        if location.folder and is_shared:
            return f"{self.window} {location.folder}"
        return self.document_key(self.notebooks.notebook_of(location.uri) or location.uri)

    def document_key(self, uri: str) -> str:
        """Return the engine's name of a document, unique among all windows."""
        return f"{self.window} {uri}"

    def snapshot(self, uri: str, place: LineColumn) -> DocumentSnapshot | None:
        """Return the text around a position in the client's units; None for a document that is not open."""
        document = self.documents.get(uri)
        if document is None:
            return None
        return document.snapshot(*document.place(place, self.encoding))

    def is_behind_word(self, uri: str, place: LineColumn) -> bool:
        """Return whether a letter, digit or underscore is left of a position in the client's units."""
        document = self.documents.get(uri)
        if document is None:
            return False
        line, column = document.place(place, self.encoding)
        return bool(typed_word(document.content(line)[:column]))

    def offer(self, record_id: str, snapshot: DocumentSnapshot, completion: Completion) -> Offer | None:
        """Fit `completion` to the present document, without the part that the user typed meanwhile.

        None if nothing is left of it, or if the document changed otherwise or is closed.
        """
        document = self.documents.get(snapshot.uri)
        if document is None:
            return None
        num_typed = document.num_chars - snapshot.num_chars
        is_same = document.version == snapshot.version and num_typed == 0
        if not (is_same or _was_typed_along(document, snapshot, completion.text, num_typed)):
            return None
        typed, text = completion.text[:num_typed], completion.text[num_typed:]
        if not text:
            return None
        line, column = _advance(snapshot.line, snapshot.column, typed)
        num_replaced = min(completion.num_replaced, len(document.content(line)) - column)
        return Offer(record_id, document, line, column, text, num_replaced, typed)

    def next_id(self) -> str:
        """Return a name for the next completion."""
        self._num_records += 1
        return str(self._num_records)

    def remember(self, record: CompletionRecord) -> None:
        """Store a completion, for acceptance and for questions about it."""
        self._records[record.id] = record
        while len(self._records) > NUM_RECORDS:
            self._records.popitem(last=False)

    def record(self, record_id: object) -> CompletionRecord | None:
        """Return a completion by its name, if it is recent."""
        return self._records.get(record_id) if isinstance(record_id, str) else None

    def last_record_at(self, snapshot: DocumentSnapshot) -> CompletionRecord | None:
        """Return the best candidate of the last completion for exactly this text and position."""
        for record in reversed(self._records.values()):
            if record.snapshot == snapshot and not record.rank:
                return record
        return None

    def accept(self, record_id: object, num_units: int | None = None) -> None:
        """Record that the user accepted the first `num_units` UTF-16 units of an inserted suggestion; None
        for all.

        Units that were accepted before are counted once.
        """
        record = self.record(record_id)
        if record is None:
            return
        num_chars = len(record.text)
        if num_units is not None:
            document = self.documents.get(record.snapshot.uri)
            inserted = record.text.replace("\n", document.newline if document else "\n")
            num_chars = len(plain_newlines(inserted[: index_of(inserted, max(0, num_units), "utf-16")]))
        num_new = max(0, num_chars - record.num_accepted_chars)
        self._records[record.id] = replace(record, num_accepted_chars=record.num_accepted_chars + num_new)
        self.measurements.num_accepted_chars += num_new


def _was_typed_along(document: Document, snapshot: DocumentSnapshot, text: str, num_typed: int) -> bool:
    """Whether the document is the snapshot with the first `num_typed` characters of `text` inserted."""
    if not 0 <= num_typed <= len(text) or snapshot.line >= len(document.lines):
        return False
    if snapshot.column > len(document.content(snapshot.line)):
        return False
    now = document.snapshot(snapshot.line, snapshot.column)
    expected = text[:num_typed] + snapshot.suffix
    num_known = min(len(expected), len(now.suffix))
    return now.prefix == snapshot.prefix and now.suffix[:num_known] == expected[:num_known]


def _advance(line: int, column: int, text: str) -> LineColumn:
    """Return the position after `text` that begins at (line, column)."""
    num_lines = text.count("\n")
    return (line + num_lines, len(text) - text.rfind("\n") - 1) if num_lines else (line, column + len(text))
