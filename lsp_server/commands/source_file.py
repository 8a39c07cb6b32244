"""A source file from disk and a cursor in it, for the commands. Has no access to models or the protocol."""

from __future__ import annotations

from pathlib import Path

from completion_engine.cutting.language_names import language_of_path
from completion_engine.errors import UserError

_MAX_FILE_BYTES = 5 * 1024 * 1024


def language_id(path: Path) -> str:
    """The protocol's name of a file's language, by its ending; `plaintext` if the ending is unknown."""
    return language_of_path(path.name)


def repository_of(path: Path) -> Path:
    """The repository of a file or folder: the nearest folder with a `.git`, otherwise its own folder."""
    folder = path.resolve() if path.is_dir() else path.resolve().parent
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)


def read_source(path: Path) -> str:
    """The text of a source file, with its own line ends.

    Raises UserError for one that is missing, a directory, unreadable, too big, binary or not UTF-8.
    """
    if not path.exists():
        raise UserError(f"There is no file {path}.")
    if not path.is_file():
        raise UserError(f"{path} is not a file.", advice="Name a source file.")
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > _MAX_FILE_BYTES:
        raise UserError(f"{path} is too big: the limit is {_MAX_FILE_BYTES} bytes.")
    if b"\0" in data:
        raise UserError(f"{path} is a binary file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {error.start} is {data[error.start]:#04x}"
        raise UserError(f"{path} is not UTF-8: {found}.", advice="Save the file as UTF-8.") from error


def parse_cursor(text: str) -> tuple[Path, int, int]:
    """The file, line and column of `FILE:LINE:COLUMN`. Raises UserError for any other text."""
    file, *numbers = text.rsplit(":", 2)
    if not file or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        raise UserError(
            f"{text} is not FILE:LINE:COLUMN.", advice="For example main.py:3:1, the start of the third line."
        )
    line, column = map(int, numbers)
    return Path(file), line, column


def split_at(text: str, line: int, column: int) -> tuple[str, str]:
    """The text left and right of a cursor, with `\\n` line ends.

    `line` and `column` count from 1, in lines and in characters. Raises UserError for one beyond the text.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not 1 <= line <= len(lines):
        raise UserError(
            f"There is no line {line}: the file has {len(lines)} lines.", advice="Lines count from 1."
        )
    left, right = lines[: line - 1], lines[line:]
    if not 1 <= column <= (num_columns := len(lines[line - 1]) + 1):
        message = f"There is no column {column} in line {line}: its end is column {num_columns}."
        raise UserError(message, advice="Columns count characters from 1.")
    at = column - 1
    return "\n".join([*left, lines[line - 1][:at]]), "\n".join([lines[line - 1][at:], *right])
