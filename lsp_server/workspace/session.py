"""The state of one editor: open documents, folders, settings, and recent suggestions. Event loop only."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lsp_server.workspace.documents import (
    Document,
    DocumentSnapshot,
    LineColumn,
    PositionEncoding,
    typed_word,
)
from lsp_server.workspace.edit_log import EditLog, LastDeletion
from lsp_server.workspace.locations import DocumentLocation, FileIdentity, WorkspaceFolders, locate
from lsp_server.workspace.measurements import Measurements
from lsp_server.workspace.notebooks import Notebooks
from lsp_server.workspace.offers import Proposals, RecentOffers
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_layers import Configuration
from ngram_cache.repository import RepositoryOptions


@dataclass(slots=True)
class Session:
    """One editor's state. `focused_uri` is the document that the user looks at.

    `too_large` are open documents without suggestions.
    `unidentified` documents get no suggestions until the disk reports which files they are. `window` is the
    editor's number among those that use the same engine. `is_older_client` is True for the clients that
    `handlers/older_clients.py` serves.
    """

    window: int = 0
    encoding: PositionEncoding = "utf-16"
    documents: dict[str, Document] = field(default_factory=dict)
    too_large: dict[str, Document] = field(default_factory=dict)
    folders: WorkspaceFolders = field(default_factory=WorkspaceFolders)
    focused_uri: str = ""
    is_older_client: bool = False
    configuration: Configuration = field(default_factory=Configuration)
    measurements: Measurements = field(default_factory=Measurements)
    notebooks: Notebooks = field(default_factory=Notebooks)
    unidentified: set[str] = field(default_factory=set)
    edits: EditLog = field(default_factory=EditLog)
    deletion: LastDeletion = field(default_factory=LastDeletion)
    offers: RecentOffers = field(default_factory=RecentOffers)
    proposals: Proposals = field(default_factory=Proposals)
    _locations: dict[str, DocumentLocation] = field(default_factory=dict)

    def put(self, document: Document) -> None:
        """Add an open document with this content; it is served unless it is too large."""
        uri = document.uri
        location, is_unidentified = self.location_of(uri), uri in self.unidentified
        self.drop(uri)
        if is_unidentified:
            self.unidentified.add(uri)
        (self.too_large if document.is_too_large else self.documents)[uri] = document
        self._locations[uri] = location

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
        self.unidentified.discard(uri)
        self._locations.pop(uri, None)

    def follows(self, uri: str) -> bool:
        """Return whether the client has opened this document and not closed it."""
        return uri in self._locations

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

    def index_options(self, folder: Path) -> RepositoryOptions | None:
        """Return how a workspace folder is indexed; None if it is not."""
        if folder in self.folders.unread:
            return None
        return self.configuration.index_options(folder, self.folders.around.get(folder, ()))

    def refusal_of_focused(self) -> str:
        """Return the rule that suppresses automatic suggestions in the focused document, or an empty string.

        While the disk is being asked about the document, there is no rule yet.
        """
        document = self.documents.get(self.focused_uri)
        if document is None or document.uri in self.unidentified:
            return ""
        return self.refusal(document.uri, document.language, is_invoked=False)

    def refusal(self, uri: str, language: str, *, is_invoked: bool) -> str:
        """Return the rule that suppresses completions in a document, or an empty string.

        `is_invoked` is True if the user asked for a suggestion.
        """
        location = self.location_of(uri)
        if location.is_secret:
            return "secret-file"
        if uri in self.unidentified or not self.folders.unread.isdisjoint(location.rule_folders):
            return "unread-folder"
        settings = self.settings_for(uri)
        if not is_enabled(settings, language):
            return "language-disabled"
        return "trigger-manual" if settings.trigger == "manual" and not is_invoked else ""

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

    def deleted_at(self, snapshot: DocumentSnapshot) -> str:
        """Return the text that the user deleted last if it stood after this cursor, otherwise nothing."""
        document = self.documents.get(snapshot.uri)
        if document is None or document.version != snapshot.version:
            return ""
        return self.deletion.text_at(document, snapshot.line, snapshot.column)

    def accept(self, record_id: object, num_units: int | None = None) -> None:
        """Count the characters of a suggestion that the user accepted; see `RecentOffers.accept`."""
        record = self.offers.record(record_id)
        document = self.documents.get(record.snapshot.uri) if record else None
        num_new = self.offers.accept(record_id, num_units, document.newline if document else "\n")
        self.measurements.num_accepted_chars += num_new


def is_enabled(settings: Settings, language: str) -> bool:
    """Return whether suggestions are switched on for a language."""
    return settings.languages.get(language, settings.languages.get("*", True))
