"""The inputs of a command without a server: a source file, cursors, the settings, and an engine."""

from __future__ import annotations

import random
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from completion_engine.config import AUTO, DEFAULT_TARGET, EngineConfig
from completion_engine.context.snippet_choice import INGREDIENTS, CursorLocation, RepositoryView, choose
from completion_engine.cutting.language_names import language_of_path
from completion_engine.errors import UserError
from completion_engine.request import CompletionRequest, RepositoryContext
from completion_engine.text_window import TextWindow
from lsp_server.workspace import settings_reading as files
from lsp_server.workspace.open_files import find_folder
from lsp_server.workspace.prefetch import CHARS_OF_TOKEN
from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_layers import Configuration
from ngram_cache.git_places import work_tree
from ngram_cache.overlays import TokenSource
from ngram_cache.repository import Repository, RepositoryOptions

if TYPE_CHECKING:
    from completion_engine.choice.choice import Choice
    from completion_engine.engine import CompletionEngine
    from completion_engine.request import Progress

_MAX_FILE_BYTES = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The user's settings as a folder's file and those around it narrow them, and each problem as a sentence.

    `index` holds the options of the folder's index; None if it is not indexed.
    """

    settings: Settings
    index: RepositoryOptions | None
    problems: tuple[str, ...]


def settings_for(folder: Path) -> FolderSettings:
    """Read the settings that hold in `folder`."""
    configuration, user = Configuration(), files.read_user_file(files.user_file())
    problems = [*user.problems, *configuration.set_layer("config.toml", user.values)]
    _, around = find_folder(folder)
    for place, found in {**around, folder: files.read_repository_file(folder)}.items():
        problems += [*found.problems, *configuration.set_repository(place, found.values)]
    settings = configuration.of(*around, folder)
    return FolderSettings(settings, configuration.index_options(folder, tuple(around)), tuple(problems))


def reported(folder: Path) -> FolderSettings:
    """Read the settings that hold in `folder`, and write their problems to stderr."""
    found = settings_for(folder)
    sys.stderr.writelines(f"slipstream: {problem}\n" for problem in found.problems)
    return found


def indexed(folder: Path) -> tuple[Settings, RepositoryOptions]:
    """Like `reported`, for a folder that is indexed. Raises UserError for another one."""
    found = reported(folder)
    if found.index is None:
        advice = "Change the setting index.enabled, or correct the settings files that are named above."
        raise UserError(f"{folder} is not indexed: its settings exclude it.", advice=advice)
    return found.settings, found.index


def with_target(settings: Settings) -> Settings:
    """`settings` with a named model instead of `auto`: the one that an editor would start with now."""
    if settings.target != AUTO:
        return settings
    return settings.model_copy(update={"target": choose_target(settings).start})


def named_target(target: str) -> str:
    """The model of a name; `auto` is what an editor without settings would start with now."""
    return choose_target().start if target == AUTO else target


def choose_target(settings: Settings | None = None, running: str = "") -> Choice:
    """The choice of `auto` for an engine of `settings`; `running` is loaded already. Loads torch."""
    from completion_engine.choice.target_chooser import TargetChooser  # noqa: PLC0415 - loads torch
    from lsp_server.engine.pool import engine_config  # noqa: PLC0415 - as above

    named = settings and engine_config(settings.model_copy(update={"target": DEFAULT_TARGET}))
    return TargetChooser().choose(named or EngineConfig(), running)


def load_engine(settings: Settings, report: Progress, *, warms_up: bool = True) -> CompletionEngine:
    """The engine of `settings`, which name a model; fetches the model if it is missing.

    `warms_up` as in `load_engine_from`. Raises SlipstreamError.
    """
    from completion_engine.loading.warmup import compiled_meanwhile  # noqa: PLC0415 - not needed for help
    from completion_engine.models import ModelStore  # noqa: PLC0415 - as above
    from lsp_server.engine.pool import engine_config  # noqa: PLC0415 - as above

    config = engine_config(settings)
    with compiled_meanwhile(config, report):
        ModelStore().ensure(config.target, report)
        from completion_engine import load_engine as loading  # noqa: PLC0415 - loads torch
        from completion_engine.choice.target_chooser import TargetChooser  # noqa: PLC0415 - loads torch
    engine = loading.load_engine(config, report, warms_up=warms_up)
    TargetChooser().record(engine.describe())
    return engine


def repository_of(path: Path) -> Path:
    """The repository of a file or folder: the work tree around it, otherwise its own folder."""
    folder = path.resolve() if path.is_dir() else path.resolve().parent
    return work_tree(folder) or folder


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


ENDINGS = frozenset({".py", ".ts", ".js", ".go", ".rs", ".c", ".h"})
_MIN_BYTES, _MAX_BYTES = 2_000, 200_000
_MAX_TRIES = 1_000  # per sample: lines that are too short or not code are drawn again


@dataclass(frozen=True, slots=True)
class Sample:
    """One cursor in one real file. `expected` is the original text: the rest of the line.

    `document` names the file as the index does, so that no draft is read from the file itself.
    """

    name: str
    document: str
    language: str
    prefix: str
    suffix: str
    expected: str


def repository_samples(root: Path, num_samples: int) -> list[Sample]:
    """Cursor positions in the source files of a repository that an index may hold. Raises UserError."""
    found = sorted(root / file.path for file in Repository(root).walk().files)
    return drawn_samples([path for path in found if path.suffix in ENDINGS], root, num_samples)


def drawn_samples(files: Sequence[Path], root: Path, num_samples: int, seed: int = 0) -> list[Sample]:
    """Cursor positions within code lines of `files` below `root`. Raises UserError if there are none.

    The same seed draws the same positions, and more samples begin with those of fewer.
    """
    fit = [path for path in files if _MIN_BYTES <= path.stat().st_size <= _MAX_BYTES]
    if not fit:
        raise UserError(f"No source files under {root}.", advice="Name a folder with source code.")
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    drawn = (_draw(rng.choice(fit), root, rng) for _ in range(_MAX_TRIES * num_samples))
    found = list(islice(filter(None, drawn), num_samples))
    if len(found) < num_samples:
        raise UserError(f"Too little code under {root}.", advice="Name a folder with source code.")
    return found


def _draw(path: Path, root: Path, rng: random.Random) -> Sample | None:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
    starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
    start = rng.choice(starts[10:] or starts)
    end = text.find("\n", start)
    line = text[start:end] if end >= 0 else ""
    body = line.strip()
    if len(body) < 8 or body.startswith(("#", "//", "*", '"""')):
        return None
    column = rng.randrange(len(line) - len(line.lstrip()) + 1, len(line) - 2)
    cursor, name = start + column, path.relative_to(root).as_posix()
    shown = f"{name}:{text.count(chr(10), 0, cursor)}:{column}"
    return Sample(shown, name, language_of_path(path.name), text[:cursor], text[end:], line[column:])


def context_of(
    engine: CompletionEngine,
    request: CompletionRequest,
    repository: str,
    ingredients: Collection[str] = INGREDIENTS,
) -> RepositoryContext | None:
    """Snippets in front of a document after a moment of rest; None without an index."""
    if request.index is None:
        return None
    path, tokenizer = request.indexed_as or request.document, engine.tokenizer
    tokens = TokenSource(tokenizer.fingerprint, tokenizer.encode_many, tokenizer.spell)
    view = RepositoryView(request.index, tokens, repository, path)
    described = engine.describe()
    window = TextWindow(*described["window_chars"])
    location = CursorLocation(path, request.language, request.prefix, request.suffix, window)
    return choose(location, view, int(described["num_context_tokens"] * CHARS_OF_TOKEN), ingredients)
