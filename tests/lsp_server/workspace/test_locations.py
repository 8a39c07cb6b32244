"""Locations of documents: the files of their URIs on this machine, and their folders."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

import pytest

from lsp_server.workspace.locations import is_nameless, locate, path_of, path_text, stands_for_text

FOLDERS = {folder: folder for folder in (Path("/work"), Path("/work/inner"), Path("/other"))}


def test_the_innermost_folder_holds_a_document() -> None:
    assert locate("file:///work/inner/x.py", FOLDERS).folder == Path("/work/inner")
    assert locate("file:///work/x.py", FOLDERS).folder == Path("/work")
    assert locate("untitled:Untitled-1", FOLDERS).folder is None
    assert locate("file:///work/inner/d/x.py", FOLDERS).indexed_as == "d/x.py"
    assert locate("untitled:Untitled-1", FOLDERS).indexed_as == "untitled:Untitled-1"


@pytest.mark.parametrize(
    ("uri", "is_secret"),
    [
        ("file:///work/.env", True),
        ("file:///work/.ssh/x.py", True),
        ("file:///elsewhere/.env", True),
        ("untitled:.env", True),
        ("file:///work/x.py", False),
        ("http://[broken", False),
    ],
)
def test_a_name_says_that_a_document_holds_secrets(uri: str, *, is_secret: bool) -> None:
    assert locate(uri, FOLDERS).is_secret is is_secret


def test_a_cell_stands_for_its_notebook_and_is_no_file() -> None:
    found = locate("vscode-notebook-cell:/work/x.ipynb#W0sZmlsZQ%3D%3D", FOLDERS)
    assert (found.file, found.stands_for, found.is_cell) == (None, Path("/work/x.ipynb"), True)


@pytest.mark.parametrize(
    ("uri", "is_windows", "path"),
    [
        ("file:///a/x.py", False, "/a/x.py"),
        ("file://host/a/x.py", False, "//host/a/x.py"),
        ("untitled:/a%20b/x.py", False, "/a b/x.py"),
        ("untitled://dev-container%2Bab12/a/x.py", False, "/a/x.py"),
        ("untitled:Untitled-1", False, ""),
        ("untitled:d/x.py", False, ""),
        ("untitled:/a%00b", False, ""),
        ("vscode-notebook-cell:/a/x.ipynb#W0sZmlsZQ%3D%3D", False, "/a/x.ipynb"),
        ("vscode-notebook-cell:/a/x.ipynb#ch0000001", False, "/a/x.ipynb"),
        ("vscode-notebook-cell:/a/x.ipynb", False, "/a/x.ipynb"),
        ("vscode-notebook-cell:/a/x.ipynb#W0sdW50aXRsZWQ%3D", False, "/a/x.ipynb"),
        ("vscode-notebook-cell://wsl%2Bu/a/x.ipynb#W0sdnNjb2RlLXJlbW90ZQ%3D%3D", False, "/a/x.ipynb"),
        ("vscode-notebook-cell://host/a/x.ipynb#W0sdnNjb2RlLXZmcw%3D%3D", False, ""),
        ("vscode-notebook-cell:Untitled-1.ipynb#W0sdW50aXRsZWQ%3D", False, ""),
        ("vscode-vfs://github/a/x.py", False, ""),
        ("http://[broken", False, ""),
        ("untitled:/c%3A/a/x.py", True, "c:/a/x.py"),
        ("untitled:C:%5Ca%5Cx.py", True, "C:\\a\\x.py"),
        ("untitled://server/share/x.py", True, "//server/share/x.py"),
        ("vscode-notebook-cell:/c%3A/a/x.ipynb#W0sZmlsZQ%3D%3D", True, "c:/a/x.ipynb"),
        ("vscode-notebook-cell://server/share/x.ipynb#W0sZmlsZQ%3D%3D", True, "//server/share/x.ipynb"),
    ],
)
def test_documents_stand_for_files(uri: str, *, is_windows: bool, path: str) -> None:
    assert stands_for_text(uri, is_windows=is_windows) == path


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("untitled:Untitled-1", True),
        ("vscode-notebook-cell:Untitled-1.ipynb#W0sdW50aXRsZWQ%3D", True),
        ("file://", True),
        ("untitled:/a/x.py", False),
        ("untitled:/a%00b", False),
        ("untitled:c%3A%5Cx.py", False),
        ("untitled://host/x.py", False),
        ("vscode-notebook-cell:x.ipynb", False),
        ("file:///a/x.py", False),
        ("Untitled-1", False),
        ("", False),
        ("http://[broken", False),
    ],
)
def test_a_document_is_nameless_or_not(uri: str, *, expected: bool) -> None:
    assert is_nameless(uri) is expected


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/%C3%A9.py", Path("/a b/é.py")),
        ("file://localhost/a.py", Path("/a.py")),
        ("untitled:Untitled-1", None),
        ("file:///a%00b", None),
        ("http://[broken", None),
        ("", None),
    ],
)
def test_uris_name_paths(uri: str, path: Path | None) -> None:
    assert path_of(uri) == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///c%3A/a%20b/x.py", r"c:\a b\x.py"),
        ("file:///C:/a/x.py", r"C:\a\x.py"),
        ("file:///C:", "C:"),
        ("file://server/share/x.py", r"\\server\share\x.py"),
        ("file://localhost/c%3A/x.py", r"c:\x.py"),
        ("file:///c%3A/a%00b", None),
        ("vscode-remote://wsl/home/x.py", None),
    ],
)
def test_uris_of_windows_name_its_paths(uri: str, path: str | None) -> None:
    text = path_text(uri, is_windows=True)
    assert (str(PureWindowsPath(text)) if text else None) == path


def test_a_folder_of_windows_holds_what_is_named_in_other_letters() -> None:
    file, folder = (path_text(uri, is_windows=True) for uri in ("file:///c%3A/Work/x.py", "file:///C:/work"))
    assert PureWindowsPath(file).is_relative_to(PureWindowsPath(folder))
