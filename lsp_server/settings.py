"""What the user chose: the settings, where each value may come from, and what is wrong with a bad one.

Owns names, limits and merging. Must not know the protocol, nor what a setting does.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from completion_engine.config import DEFAULT_DRAFTERS, DEFAULT_TARGET, DRAFTERS
from completion_engine.request import Multiline

REPOSITORY_FILE = ".slipstream.toml"
MAX_FILE_BYTES = 256 * 1024

# Groups under the same section that belong to the editors' extensions.
EDITOR_GROUPS = frozenset({"trace", "server", "editor"})


_MODEL = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class IndexSettings(BaseModel):
    """The group `index`: what of a repository is read."""

    model_config = _MODEL

    enabled: bool = True
    max_files: int = Field(default=20_000, ge=0)
    exclude: tuple[str, ...] = ()


class Settings(BaseModel):
    """All settings with their defaults. Keys are written in camelCase outside of Python."""

    model_config = _MODEL

    target: str = Field(default=DEFAULT_TARGET, min_length=1)
    drafters: tuple[str, ...] = DEFAULT_DRAFTERS
    draft_model: str = ""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "bfloat16", "float32", "int8", "int4"] = "auto"
    deadline_ms: float = Field(default=100.0, ge=0)
    patience_ms: float = Field(default=1500.0, ge=0)
    max_tokens: int = Field(default=64, ge=1, le=1024)
    multiline: Multiline = "auto"
    trigger: Literal["automatic", "manual"] = "automatic"
    languages: dict[str, bool] = Field(default_factory=dict)
    index: IndexSettings = Field(default_factory=IndexSettings)
    temperature: float = Field(default=0.0, ge=0, le=2)
    candidates: int = Field(default=1, ge=1, le=8)

    @field_validator("drafters")
    @classmethod
    def _known(cls, drafters: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in drafters if name not in DRAFTERS]:
            raise ValueError(f"{unknown[0]} is none of {', '.join(DRAFTERS)}")
        return drafters

    def is_enabled_for(self, language: str) -> bool:
        """Whether completions are wanted in `language`; `*` in `languages` speaks for all the others."""
        return self.languages.get(language, self.languages.get("*", True))

    def refusal(self, language: str, *, is_invoked: bool) -> str:
        """The name of the rule by which no completion is wanted in `language`, or nothing.

        `is_invoked` says that the user asked for one.
        """
        if not self.is_enabled_for(language):
            return "language-disabled"
        return "trigger-manual" if self.trigger == "manual" and not is_invoked else ""


@dataclass(frozen=True, slots=True)
class Merged:
    """Settings, and a sentence for each value that could not be taken."""

    settings: Settings
    problems: tuple[str, ...] = ()


AnyModel = TypeVar("AnyModel", bound=BaseModel)


def merge(base: Settings, values: object, source: str) -> Merged:
    """`base` with the user's or machine's `values` over it, key by key; a bad one leaves what held before.

    `source` names the origin in messages, as in "config.toml".
    """
    reader = _Reader(source)
    return Merged(reader.overlay(base, values), tuple(reader.problems))


def narrow(base: Settings, values: object, source: str) -> Merged:
    """`base` narrowed by a repository's `values`: it may disable, ignore and limit, and nothing else."""
    wanted = merge(Settings(), values, source)
    problems = list(wanted.problems)
    given = _given_keys(values)
    changes: dict[str, Any] = {}
    for key, value in _leaves(wanted.settings):
        if key not in given:
            continue
        if (rule := _NARROWING.get(key)) is None:
            problems.append(f"{source}: a repository may not set {key}; it may only disable and limit.")
        else:
            changes[key] = rule(dict(_leaves(base))[key], value)
    index = base.index.model_copy(update={_field(k): v for k, v in changes.items() if k.startswith("index.")})
    top = {_field(k): v for k, v in changes.items() if not k.startswith("index.")}
    return Merged(base.model_copy(update={**top, "index": index}), tuple(problems))


def user_file() -> Path:
    """Where a user's own settings lie."""
    return platformdirs.user_config_path("slipstream") / "config.toml"


def read_file(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The values in a settings file and what is wrong with it; no file, or a pipe, is an empty one."""
    try:
        if not path.is_file():
            return {}, ()
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            return {}, (f"{path} is ignored: it is larger than {MAX_FILE_BYTES} bytes.",)
        return tomllib.loads(data.decode()), ()
    except (OSError, ValueError) as error:
        return {}, (f"{path} is ignored: {error}",)


class _Reader:
    """Takes values from one source key by key and collects what is wrong with them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[str] = []

    def overlay(self, base: AnyModel, values: object, group: str = "") -> AnyModel:
        """`base` with the good ones of `values` over it."""
        if values is None:
            return base
        if not isinstance(values, Mapping):
            name = group or "the settings"
            self._complain(f"{name} must be a table of keys, not {_shown(values)}; it is ignored.")
            return base
        names = {info.alias or name: name for name, info in type(base).model_fields.items()}
        changes: dict[str, Any] = {}
        for key, value in _nested(values).items():
            path = f"{group}.{key}" if group else key
            if (name := names.get(key, "")) == "":
                if path in EDITOR_GROUPS:
                    continue
                self._complain(f"there is no setting {path}.{_suggestion(key, names)}")
            elif isinstance(current := getattr(base, name), BaseModel):
                changes[name] = self.overlay(current, value, path)
            elif value is not None:
                changes[name] = self._checked(base, name, path, value)
        return base.model_copy(update=changes)

    def _checked(self, base: BaseModel, name: str, path: str, value: object) -> Any:
        """`value` as its setting wants it, or what held before."""
        try:
            model = type(base).model_validate_json(json.dumps({to_camel(name): value}, default=str))
        except ValidationError as error:
            reason, held = error.errors()[0]["msg"], getattr(base, name)
            self._complain(f"{path} cannot be {_shown(value)}: {reason}. {_shown(held)} holds instead.")
            return held
        return getattr(model, name)

    def _complain(self, problem: str) -> None:
        self.problems.append(f"{self.source}: {problem}")


def _nested(values: Mapping[Any, Any]) -> dict[str, Any]:
    """`values` with dotted keys ("index.enabled", as some editors send them) as groups."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        head, dot, rest = str(key).partition(".")
        if dot and isinstance(group := nested.setdefault(head, {}), dict):
            group[rest] = value
        elif isinstance(value, Mapping) and isinstance(nested.get(head), dict):
            nested[head].update(value)
        else:
            nested[head] = dict(value) if isinstance(value, Mapping) else value
    return nested


def _given_keys(values: object) -> set[str]:
    if not isinstance(values, Mapping):
        return set()
    keys = _nested(values)
    group = keys.pop("index", {})
    return {*keys, *(f"index.{key}" for key in group)} if isinstance(group, dict) else set(keys)


def _leaves(settings: Settings) -> list[tuple[str, Any]]:
    """Every setting with its outside name."""
    top = [(to_camel(name), getattr(settings, name)) for name in Settings.model_fields if name != "index"]
    index = [(f"index.{to_camel(n)}", getattr(settings.index, n)) for n in IndexSettings.model_fields]
    return top + index


def _field(key: str) -> str:
    """The attribute's name of an outside key."""
    name = key.removeprefix("index.")
    fields = [*Settings.model_fields, *IndexSettings.model_fields]
    return next(field for field in fields if to_camel(field) == name)


def _shown(value: object) -> str:
    """A value as it would be written in a settings file, cut to what a message can hold."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _suggestion(key: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _only_off(current: dict[str, bool], wanted: dict[str, bool]) -> dict[str, bool]:
    off = dict.fromkeys((language for language, enabled in wanted.items() if not enabled), False)
    return {**(dict.fromkeys(current, False) if "*" in off else current), **off}


_NARROWING: dict[str, Callable[[Any, Any], Any]] = {
    "trigger": lambda current, wanted: "manual" if "manual" in {current, wanted} else current,
    "multiline": lambda current, wanted: "never" if wanted == "never" else current,
    "languages": _only_off,
    "maxTokens": min,
    "patienceMs": min,
    "candidates": min,
    "index.enabled": lambda current, wanted: current and wanted,
    "index.maxFiles": min,
    "index.exclude": lambda current, wanted: (*current, *(p for p in wanted if p not in current)),
}
