"""Snippets with definitions of names: from other files, and from outside of the document's text window."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from completion_engine.context.outline import Definition, SourceFile, brings_names_in, described
from completion_engine.request import Snippet

_MIN_WEIGHT = 0.25  # definitions of names with less are left out
_IMPORTED = 1.5  # factor for a definition in a file that the document imports
_MAX_DEFINITION_CHARS = 700
_MAX_HEAD_LINES = 30


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names to define with their weights, and the words of the document's imports.

    Names `known` in the document and definitions that are `visible` are left out.
    """

    names: Mapping[str, float]
    imports: Collection[str]
    known: Collection[str]
    visible: str


def definition_snippets(sources: Sequence[SourceFile], wanted: Wanted, max_chars: int) -> list[Snippet]:
    """Return definitions from `sources`, those of the highest weights, one snippet per file."""
    chosen: dict[int, set[int]] = defaultdict(set)
    left = max_chars
    for at, ranked in _ranked(sources, wanted):
        definitions = sources[at].definitions
        index = _whole(definitions, ranked)
        definition = definitions[index]
        text = described(definitions, index)[:_MAX_DEFINITION_CHARS]
        cost = len(text) + 1 + (0 if at in chosen else len(sources[at].path))
        is_shown = definition.signature.strip() in wanted.visible or definition.owner in chosen[at]
        if cost <= left and not is_shown and index not in chosen[at]:
            chosen[at].add(index)
            left -= cost
    return [_snippet(sources[at], sorted(indices)) for at, indices in sorted(chosen.items()) if indices]


def _ranked(sources: Sequence[SourceFile], wanted: Wanted) -> list[tuple[int, int]]:
    """Return the wanted definitions as (source index, definition index), the highest weights first.

    A name that many files define has a lower weight, because any of its definitions may be the right one.
    """
    num_definitions: Counter[str] = Counter()
    found: list[tuple[float, str, int, int]] = []
    for at, source in enumerate(sources):
        is_imported = any(part in wanted.imports for part in source.path.replace(".", "/").split("/"))
        for index, definition in enumerate(source.definitions):
            weight = wanted.names.get(definition.name, 0.0) * (_IMPORTED if is_imported else 1.0)
            if weight >= _MIN_WEIGHT and definition.name not in wanted.known:
                num_definitions[definition.name] += 1
                found.append((weight, definition.name, at, index))
    found.sort(key=lambda it: (-it[0] / num_definitions[it[1]], it[2], it[3]))
    return [(at, index) for _, _, at, index in found]


def _whole(definitions: Sequence[Definition], index: int) -> int:
    """Return the index of the definition to show: a short type for its member, else the definition itself."""
    owner = definitions[index].owner
    return index if owner < 0 or definitions[owner].lacks_members else owner


def _snippet(source: SourceFile, indices: Sequence[int]) -> Snippet:
    """Return definitions of a file in their order, each member after the head of its type."""
    texts: list[str] = []
    shown: set[int] = set()
    for index in indices:
        owner = source.definitions[index].owner
        if owner >= 0 and owner not in shown:
            texts.append(source.definitions[owner].signature)
        shown |= {owner, index}
        texts.append(described(source.definitions, index)[:_MAX_DEFINITION_CHARS])
    return Snippet(source.path, "\n".join(texts))


class OwnFile:
    """The part of the document outside of the text window: its imports and definitions."""

    def __init__(self, whole: SourceFile, num_lines_before: int, num_lines_visible: int) -> None:
        """`whole` is the document; the target sees `num_lines_visible` lines after the first
        `num_lines_before`.
        """
        self._whole = whole
        self._first, self._last = num_lines_before, num_lines_before + num_lines_visible

    @property
    def defined(self) -> frozenset[str]:
        """The names that the document defines, in the text window or outside."""
        return frozenset(definition.name for definition in self._whole.definitions)

    def snippets(self, names: Mapping[str, float], max_chars: int) -> list[Snippet]:
        """Return imports and signatures outside of the text window, in their order; `names` are preferred."""
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
    """Return the imports among the first of `lines`."""
    found = [line for line in lines[:_MAX_HEAD_LINES] if brings_names_in(line)]
    while found and sum(map(len, found)) + len(found) > max_chars:
        found.pop()
    return "\n".join(found)
