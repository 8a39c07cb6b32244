"""Chooses the repository snippets that the target sees in front of a document, for one cursor.

There are three ingredients: definitions of the names used around the cursor, the document's own imports and
definitions outside of the text window, and snippets of other files that share rare names with it. At most
`_MAX_FILES` files are read.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from completion_engine.context.definitions import OwnFile, Uses, Wanted, definition_snippets, uses_at
from completion_engine.context.outline import SourceFile, brings_names_in
from completion_engine.cutting.language_names import language_of_path
from completion_engine.request import RepositoryContext, Snippet
from completion_engine.text_window import TextWindow
from ngram_cache import NgramIndex
from ngram_cache.overlays import TokenSource
from ngram_cache.redaction import blank_secrets

INGREDIENTS = ("definitions", "own", "similar")

_MAX_NAMES = 64
_MAX_FILES = 12  # to read for one cursor
_MAX_FILE_TOKENS = 12_000
_IMPORTED, _RECENT, _NEAR = 2.0, 1.0, 0.3  # weights of a file, added to those of the names that it shares
_SCRIPTS = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact"})
_FAMILIES = (_SCRIPTS, frozenset({"c", "cpp"}))
# In these languages definitions need more room than they are worth (docs/experiments/prompt.md).
_USUAL = dict.fromkeys(_SCRIPTS, ("own", "similar"))
_SHARES = {"definitions": 0.6, "own": 0.4, "similar": 1.0}  # shares of the remaining budget, in this order
MIN_KEPT = 0.5  # the present context stays if it holds this share of a new choice
_NUM_LINES, _STEP = 12, 4
_MAX_SNIPPETS = 3
_MAX_SHARED = 0.5  # share of a snippet's lines that may be visible in the document already
_MAX_LINE_CHARS = 200
_WORD = re.compile(r"[^\W\d]\w{2,}")
_LEADS = (" ", ".", "(", "")  # a name has other tokens after other text
# occurrences of a name to read, for each lead; a name with more is not specific
_MAX_OCCURRENCES = 48


@dataclass(frozen=True, slots=True)
class CursorLocation:
    """A cursor in a document of a repository, and the recently opened files, the last one first.

    `window` is the text window that the target sees around the cursor in any case.
    """

    path: str
    language: str
    prefix: str
    suffix: str
    window: TextWindow
    recent: tuple[str, ...] = field(default=())

    @property
    def visible(self) -> str:
        """The part of the document in the text window."""
        return self.window.before(self.prefix) + self.window.after(self.suffix)


def choose(
    location: CursorLocation, view: RepositoryView, max_chars: int, ingredients: Collection[str] | None = None
) -> RepositoryContext:
    """Return the context for a cursor, at most `max_chars` characters; empty if nothing relevant is found.

    `ingredients` defaults to those of `usual_ingredients` for the language.
    """
    survey = _Survey(location, view)
    if ingredients is None:
        ingredients = usual_ingredients(location.language)
    snippets: list[Snippet] = []
    for name in INGREDIENTS:
        if name in ingredients:
            left = max_chars - sum(len(snippet.path) + len(snippet.text) for snippet in snippets)
            snippets += survey.snippets(name, int(left * _SHARES[name]), snippets)
    return RepositoryContext(view.name, tuple(snippets))


def usual_ingredients(language: str) -> tuple[str, ...]:
    """Return the ingredients that are used by default for a language."""
    return _USUAL.get(language, INGREDIENTS)


def stable(previous: RepositoryContext | None, chosen: RepositoryContext) -> RepositoryContext:
    """Return `previous` if it contains most of `chosen`, because a change of context needs a new prompt."""
    if previous is None:
        return chosen
    known = set(_lines(previous))
    new = list(_lines(chosen))
    return previous if sum(line in known for line in new) >= MIN_KEPT * len(new) else chosen


def _lines(context: RepositoryContext) -> Iterator[tuple[str, str]]:
    for snippet in context.snippets:
        yield from ((snippet.path, line) for line in snippet.text.split("\n") if line.strip())


class _Survey:
    """Facts about the repository around one cursor, each computed when an ingredient first needs it."""

    def __init__(self, location: CursorLocation, view: RepositoryView) -> None:
        self._location = location
        self._view = view
        self._uses = uses_at(location.prefix, location.suffix, location.language)

    def snippets(self, ingredient: str, max_chars: int, before: list[Snippet]) -> list[Snippet]:
        """Return the snippets of one ingredient within a budget; text that the target sees is left out."""
        if max_chars <= 0:
            return []
        if ingredient == "own":
            return self._own.snippets(self._names, max_chars)
        if ingredient == "definitions":
            known, visible = self._own.defined, self._location.visible
            wanted = Wanted(self._names, self._uses.imports, known, visible)
            return definition_snippets(self._sources, wanted, max_chars)
        seen = "\n".join([self._location.visible, *(snippet.text for snippet in before)])
        return similar_snippets(self._sources, self._rarities, seen, max_chars)

    @cached_property
    def _own(self) -> OwnFile:
        here = self._location
        whole = SourceFile(here.path, here.language, blank_secrets(here.prefix + here.suffix))
        num_lines_before = here.prefix.count("\n", 0, here.window.start(here.prefix))
        return OwnFile(whole, num_lines_before, here.visible.removesuffix("\n").count("\n"))

    @cached_property
    def _names(self) -> dict[str, float]:
        """The `_MAX_NAMES` names with the highest weights, and these weights."""
        best = sorted(self._uses.names.items(), key=lambda item: (-item[1], item[0]))
        return dict(best[:_MAX_NAMES])

    @cached_property
    def _found(self) -> dict[str, Counter[str]]:
        return self._view.files_with(self._names)

    @cached_property
    def _rarities(self) -> dict[str, float]:
        """The weights of shared names, lower for a name that many files contain."""
        num_files = {name: len(files) for name, files in self._found.items()}
        return {
            name: weight / (1.0 + math.log2(num_files[name]))
            for name, weight in self._names.items()
            if num_files[name]
        }

    @cached_property
    def _sources(self) -> list[SourceFile]:
        """The texts of the files with the highest scores, the best first."""
        scores = _file_scores(self._location, self._uses, self._rarities, self._found, self._view.index.paths)
        best = sorted(scores, key=lambda path: (-scores[path], path))[:_MAX_FILES]
        read = ((path, self._view.read(path, _MAX_FILE_TOKENS)) for path in best)
        return [SourceFile(path, language_of_path(path), text) for path, text in read if text]


def _file_scores(
    location: CursorLocation,
    uses: Uses,
    rarities: Mapping[str, float],
    found: Mapping[str, Counter[str]],
    paths: Collection[str],
) -> dict[str, float]:
    """Return the score of each related file of the same language."""
    scores: dict[str, float] = defaultdict(float)
    for name, rarity in rarities.items():
        for path in found[name]:
            scores[path] += rarity
    for path in paths:
        if _stem(path) in uses.imports:
            scores[path] += _IMPORTED
    for path in location.recent:
        scores[path] += _RECENT
    folder = location.path.rpartition("/")[0]
    family = _family(location.language)
    return {
        path: score + _NEAR * (path.rpartition("/")[0] == folder)
        for path, score in scores.items()
        if path != location.path and language_of_path(path) in family
    }


def _stem(path: str) -> str:
    """Return the name by which imports refer to a file: its stem, or the folder of an index file."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    return folder.rpartition("/")[2] if stem in {"__init__", "index", "mod"} else stem


def _family(language: str) -> frozenset[str]:
    return next((family for family in _FAMILIES if language in family), frozenset({language}))


def similar_snippets(
    sources: Sequence[SourceFile], rarities: Mapping[str, float], seen: str, max_chars: int
) -> list[Snippet]:
    """Return the snippets with the highest scores, at most one per file, the best last.

    Snippets that are mostly `seen` are left out.
    """
    known = {line.strip() for line in seen.split("\n")}
    best = [found for source in sources if (found := _best_snippet(source, rarities, known)) is not None]
    snippets: list[Snippet] = []
    left = max_chars
    for _, snippet in sorted(best, key=lambda it: -it[0]):
        cost = len(snippet.path) + len(snippet.text)
        if cost <= left and len(snippets) < _MAX_SNIPPETS:
            snippets.append(snippet)
            left -= cost
    return snippets[::-1]


def _best_snippet(
    source: SourceFile, rarities: Mapping[str, float], known: set[str]
) -> tuple[float, Snippet] | None:
    names = [
        set() if brings_names_in(line) else {name for name in _WORD.findall(line) if name in rarities}
        for line in source.lines
    ]
    best, best_start = 0.0, -1
    for start in range(0, len(names), _STEP):
        score = sum(rarities[name] for name in set().union(*names[start : start + _NUM_LINES]))
        if score > best and not _is_known(source.lines[start : start + _NUM_LINES], known):
            best, best_start = score, start
    if best_start < 0:
        return None
    lines = source.lines[best_start : best_start + _NUM_LINES]
    text = "\n".join(line[:_MAX_LINE_CHARS] for line in lines).strip("\n")
    return best, Snippet(source.path, text)


def _is_known(lines: Sequence[str], known: set[str]) -> bool:
    texts = [line.strip() for line in lines if line.strip()]
    return sum(line in known for line in texts) > _MAX_SHARED * len(texts)


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """The files of an index without the document `own_path`; excluded files and secrets are not in it.

    `tokens` converts to and from the index's tokens.
    """

    index: NgramIndex
    tokens: TokenSource
    name: str = ""
    own_path: str = ""

    def files_with(
        self, names: Iterable[str], leads: Sequence[str] = _LEADS, max_occurrences: int = _MAX_OCCURRENCES
    ) -> dict[str, Counter[str]]:
        """Return for each name the files that probably contain it, with the number of occurrences.

        A name has other tokens after each of the `leads`. At most `max_occurrences` are read for each.
        """
        wanted = list(names)
        encoded = self.tokens.encode_many([lead + name for name in wanted for lead in leads])
        found: dict[str, Counter[str]] = {}
        for at, tokens in enumerate(encoded):
            here = self.index.find(tokens, max_occurrences=max_occurrences, exclude=self.own_path)
            found.setdefault(wanted[at // len(leads)], Counter()).update(here)
        return found

    def read(self, path: str, max_tokens: int) -> str:
        """Return the text of the first `max_tokens` tokens of a file; empty for an unknown file."""
        tokens = self.index.tokens_of(path)[:max_tokens]
        return self.tokens.spell(tokens.tolist()).decode("utf-8", "replace")
