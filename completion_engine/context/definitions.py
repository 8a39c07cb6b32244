"""Snippets that say what names mean: definitions out of other files, and what the document has out of sight.

Knows outlines; must not know where files come from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from completion_engine.context.outline import Definition, SourceFile, brings_names_in, described
from completion_engine.request import Snippet

_MIN_WEIGHT = 0.25  # of a name that is worth its definition
_IMPORTED = 1.5  # a definition in a file that the document imports counts so many times
_MAX_DEFINITION_CHARS = 700
_MAX_HEAD_LINES = 30


@dataclass(frozen=True, slots=True)
class Wanted:
    """What definitions are wanted for: names and their weights, and the words of the document's imports.

    None is wanted of a name that is `known` in the document, none that is `visible`.
    """

    names: Mapping[str, float]
    imports: Collection[str]
    known: Collection[str]
    visible: str


def definition_snippets(sources: Sequence[SourceFile], wanted: Wanted, max_chars: int) -> list[Snippet]:
    """Definitions out of `sources`, those whose names count most, one snippet a file."""
    chosen: dict[int, set[int]] = defaultdict(set)
    left = max_chars
    for at, ranked in _ranked(sources, wanted):
        definitions = sources[at].definitions
        place = _whole(definitions, ranked)
        definition = definitions[place]
        text = described(definitions, place)[:_MAX_DEFINITION_CHARS]
        cost = len(text) + 1 + (0 if at in chosen else len(sources[at].path))
        is_told = definition.signature.strip() in wanted.visible or definition.owner in chosen[at]
        if cost <= left and not is_told and place not in chosen[at]:
            chosen[at].add(place)
            left -= cost
    return [_snippet(sources[at], sorted(places)) for at, places in sorted(chosen.items()) if places]


def _ranked(sources: Sequence[SourceFile], wanted: Wanted) -> list[tuple[int, int]]:
    """Sources and places in them of the definitions that are wanted, those that count most first.

    One that many files define counts less: it is not known which of them is meant.
    """
    num_definitions: Counter[str] = Counter()
    found: list[tuple[float, str, int, int]] = []
    for at, source in enumerate(sources):
        is_imported = any(part in wanted.imports for part in source.path.replace(".", "/").split("/"))
        for place, definition in enumerate(source.definitions):
            weight = wanted.names.get(definition.name, 0.0) * (_IMPORTED if is_imported else 1.0)
            if weight >= _MIN_WEIGHT and definition.name not in wanted.known:
                num_definitions[definition.name] += 1
                found.append((weight, definition.name, at, place))
    found.sort(key=lambda it: (-it[0] / num_definitions[it[1]], it[2], it[3]))
    return [(at, place) for _, _, at, place in found]


def _whole(definitions: Sequence[Definition], place: int) -> int:
    """The place of a definition, or of the short type that shows it."""
    owner = definitions[place].owner
    return place if owner < 0 or definitions[owner].lacks_members else owner


def _snippet(source: SourceFile, places: Sequence[int]) -> Snippet:
    """Definitions in their order, a member behind the head of what it belongs to."""
    texts: list[str] = []
    told: set[int] = set()
    for place in places:
        owner = source.definitions[place].owner
        if owner >= 0 and owner not in told:
            texts.append(source.definitions[owner].signature)
        told |= {owner, place}
        texts.append(described(source.definitions, place)[:_MAX_DEFINITION_CHARS])
    return Snippet(source.path, "\n".join(texts))


class OwnFile:
    """The document beyond the window that the target sees: its imports, and what it defines."""

    def __init__(self, whole: SourceFile, num_lines_before: int, num_lines_visible: int) -> None:
        """`whole` is the document, of which the target sees `num_lines_visible` after the first ones."""
        self._whole = whole
        self._first, self._last = num_lines_before, num_lines_before + num_lines_visible

    @property
    def defined(self) -> frozenset[str]:
        """The names that the document defines itself, in sight or not."""
        return frozenset(definition.name for definition in self._whole.definitions)

    def snippets(self, names: Mapping[str, float], max_chars: int) -> list[Snippet]:
        """The document's head and its signatures out of sight, first those of `names`, in their order."""
        head = _head(self._whole.lines[: self._first], max_chars // 2)
        left = max_chars - len(head)
        ranked = sorted(
            (-names.get(definition.name, 0.0), definition.line, definition.signature)
            for definition in self._whole.definitions
            if not self._first <= definition.line <= self._last and self._is_shown_alone(definition)
        )
        chosen: list[tuple[int, str]] = []
        for _, line, signature in ranked:
            if len(signature) + 1 <= left and signature not in head:
                chosen.append((line, signature))
                left -= len(signature) + 1
        lines = [head] if head else []
        lines += [signature for _, signature in sorted(chosen)]
        return [Snippet(self._whole.path, "\n".join(lines))] if lines else []

    def _is_shown_alone(self, definition: Definition) -> bool:
        return definition.owner < 0 or self._whole.definitions[definition.owner].lacks_members


def _head(lines: Sequence[str], max_chars: int) -> str:
    """The imports among the first of `lines`."""
    found = [line for line in lines[:_MAX_HEAD_LINES] if brings_names_in(line)]
    while found and sum(map(len, found)) + len(found) > max_chars:
        found.pop()
    return "\n".join(found)
