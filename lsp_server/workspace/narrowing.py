"""What of the settings a repository may say: it may disable, exclude and limit, and nothing else.

Owns which key may be narrowed, and how. A key without a rule, as all of a team's servers', is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from lsp_server.workspace.settings import GROUPS, Merged, Reader, Settings, nested, summed_up
from lsp_server.workspace.settings_limits import excess


def narrow(base: Settings, values: object, source: str) -> Merged:
    """`base` narrowed by a repository's `values`: it may disable, ignore and limit, and nothing else."""
    if reason := excess(values):
        return Merged(base, (f"{source} is ignored: {reason}.",))
    reader = Reader(source)
    wanted = reader.overlay(Settings(), values)
    problems = reader.all_problems()
    given = _given_keys(values)
    changes: dict[str, Any] = {}
    refused = []
    for key, value in _leaves(wanted):
        if key not in given:
            continue
        if (rule := _NARROWING.get(key)) is None:
            refused.append(key)
        else:
            changes[key] = rule(dict(_leaves(base))[key], value)
    if refused:
        problems.append(
            f"{source}: a repository may not set {', '.join(refused)}; it may only disable and limit."
        )
    if any(map(_takes_back, wanted.index.exclude)):
        problems.append(f"{source}: a repository may not take back what index.exclude names.")
    index = base.index.model_copy(update={_field(k): v for k, v in changes.items() if k.startswith("index.")})
    top = {_field(k): v for k, v in changes.items() if not k.startswith("index.")}
    return Merged(base.model_copy(update={**top, "index": index}), summed_up(problems, source))


def _given_keys(values: object) -> set[str]:
    if not isinstance(values, Mapping):
        return set()
    keys = nested(values)
    given = {*keys} - {*GROUPS}
    for name in GROUPS:
        group = keys.get(name)
        given |= {f"{name}.{key}" for key in group} if isinstance(group, dict) else {name} & {*keys}
    return given


def _leaves(settings: Settings) -> list[tuple[str, Any]]:
    """Every setting with its outside name."""
    names = [name for name in Settings.model_fields if name not in GROUPS]
    found = [(to_camel(name), getattr(settings, name)) for name in names]
    for group, model in GROUPS.items():
        values = getattr(settings, group)
        found += [(f"{group}.{to_camel(name)}", getattr(values, name)) for name in model.model_fields]
    return found


def _field(key: str) -> str:
    """The attribute's name of an outside key."""
    group, _, name = key.rpartition(".")
    fields = (GROUPS[group] if group else Settings).model_fields
    return next(field for field in fields if to_camel(field) == name)


def _takes_back(pattern: str) -> bool:
    """Whether a pattern, or a line of it, would let in again what one before it left out."""
    return any(line.startswith("!") for line in pattern.split("\n"))


def _more_excluded(current: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*current, *(pattern for pattern in wanted if not _takes_back(pattern)))))


def _only_off(current: dict[str, bool], wanted: dict[str, bool]) -> dict[str, bool]:
    off = dict.fromkeys((language for language, enabled in wanted.items() if not enabled), False)
    return {**(dict.fromkeys(current, False) if "*" in off else current), **off}


_NARROWING: dict[str, Callable[[Any, Any], Any]] = {
    "trigger": lambda current, wanted: "manual" if "manual" in {current, wanted} else current,
    "multiline": lambda current, wanted: "never" if wanted == "never" else current,
    "languages": _only_off,
    "suggestInComments": lambda current, wanted: current and wanted,
    "suggestInStrings": lambda current, wanted: current and wanted,
    "maxTokens": min,
    "patienceMs": min,
    "candidates": min,
    "eagerness": min,
    "repositoryMemory": lambda current, wanted: "off" if wanted == "off" else current,
    "context": lambda current, wanted: current and wanted,
    "index.enabled": lambda current, wanted: current and wanted,
    "index.maxFiles": min,
    "index.exclude": _more_excluded,
}
