"""Open documents are found on the disk: which file each one is, whatever its path, and whose rules hold.

The disk is asked when a document is opened, when folders come and go, and from time to time.
"""

from __future__ import annotations

from lsprotocol import types

from lsp_server.server import SlipstreamServer
from lsp_server.workspace.identities import FoundFile
from lsp_server.workspace.locations import DocumentLocation
from lsp_server.workspace.notebooks import cell_lines
from lsp_server.workspace.settings_file import REPOSITORY_FILE


def identify(server: SlipstreamServer, uri: str, *, is_urgent: bool = True) -> None:
    """Ask the disk which file an open document is; where that `is_urgent`, nothing is suggested before."""
    path = server.session.location_of(uri).stands_for
    if path is None or server.has_ended:
        return
    if is_urgent:
        server.session.unidentified.add(uri)
    server.identities.ask(uri, path)


async def identified(server: SlipstreamServer, uri: str) -> None:
    """Wait until it is known which file a document is, and whether that may still be believed; and until the
    folders around it are read, unless that takes long.

    While nothing may leave, an answer that is a little old will do: the next request has the new one.
    """
    session = server.session
    identify(server, uri, is_urgent=False)
    path = session.location_of(uri).stands_for
    if path is not None and (uri in session.unidentified or session.settings_for(uri).remote.url):
        await server.identities.answered(path)
    await session.folders.until_read(session.location_of(uri).rule_folders)


def forget(server: SlipstreamServer, location: DocumentLocation) -> None:
    """A document is closed: settings files that spoke of it alone are of no more interest."""
    server.identities.forget(location.uri, location.stands_for)
    folders = server.session.folders
    for home in set(location.rule_folders).difference(folders.paths, *folders.around.values()):
        if not server.session.has_documents_in(home):
            server.session.configuration.drop_repository(home)


def show_to_index(server: SlipstreamServer, location: DocumentLocation) -> None:
    """Have the index of a document's folder draft from its text, in place of the file's, and no other one."""
    if server.session.notebooks.notebook_of(location.uri):
        _show_notebook(server, location)
        return
    document = server.session.documents.get(location.uri)
    if location.file is None or location.uri in server.session.unidentified:
        return
    if document is None or location.folder is None or location.is_secret:
        server.indexes.document_closed(location.file)
    else:
        server.indexes.document_changed(location.folder, location.file, document.lines.copy)


def relocate(server: SlipstreamServer) -> None:
    """Folders came or went, or lead elsewhere: find open documents in them."""
    for location in server.session.relocate():
        show_to_index(server, location)


def take_identity(server: SlipstreamServer, uri: str, found: FoundFile) -> None:
    """Store the file of an open document, and the values of the settings files around it."""
    session = server.session
    if server.has_ended or not session.follows(uri):
        return
    before, was_unidentified = session.location_of(uri), uri in session.unidentified
    for folder, (values, problems) in found.settings.items():
        if folder not in session.folders:
            found_problems = problems + session.configuration.set_repository(folder, values)
            path = str(folder / REPOSITORY_FILE)
            server.messages.show_of_file(path, found_problems, types.MessageType.Warning)
    if not (session.identify(uri, found.identity) or was_unidentified):
        return
    if before.file is not None and before.file != session.location_of(uri).file:
        server.indexes.document_closed(before.file)
    show_to_index(server, session.location_of(uri))
    server.follow_edits(uri)
    server.show_status()


def _show_notebook(server: SlipstreamServer, cell: DocumentLocation) -> None:
    """Have the index draft from the cells of a notebook, as the text of its file."""
    session = server.session
    if cell.indexed_path is None or cell.folder is None or cell.uri in session.unidentified:
        return
    if cell.is_secret:
        server.indexes.document_closed(cell.indexed_path)
        return
    notebook = session.notebooks.notebook_of(cell.uri)

    def read() -> list[str]:
        return cell_lines(session.documents.get(uri) for uri in session.notebooks.cells_of(notebook))

    server.indexes.document_changed(cell.folder, cell.indexed_path, read)
