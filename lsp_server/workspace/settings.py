"""What the user chose: the settings, where each value may come from, and what is wrong with a bad one.

Owns names, limits and merging. Must not know the protocol, nor what a setting does.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from completion_engine.config import AUTO, DEFAULT_DRAFTERS, DRAFTERS
from completion_engine.request import MemoryWish, Multiline, Surroundings
from lsp_server.workspace.settings_limits import excess

_MAX_NAMED = 3
_MAX_KEY_CHARS = 40
_MAX_PROBLEMS = 5

# Groups under the same section that belong to the editors' extensions.
EDITORGROUPS = frozenset({"trace", "server", "editor"})


_MODEL = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class IndexSettings(BaseModel):
    """The group `index`: what of a repository is read."""

    model_config = _MODEL

    enabled: bool = True
    max_files: int = Field(default=20_000, ge=0, le=1_000_000)
    exclude: tuple[str, ...] = ()


class RemoteSettings(BaseModel):
    """The group `remote`: a team's servers, and how to speak with them. Without a URL nothing leaves."""

    model_config = _MODEL

    url: str = Field(default="", max_length=500)
    token_file: str = ""
    ca_file: str = ""
    model: str = ""
    tokenizer: str = ""


class Settings(BaseModel):
    """All settings with their defaults. Keys are written in camelCase outside of Python."""

    model_config = _MODEL

    target: str = Field(default=AUTO, min_length=1)
    drafters: tuple[str, ...] = DEFAULT_DRAFTERS
    draft_model: str = ""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "bfloat16", "float32", "int8", "int4"] = "auto"
    deadline_ms: float = Field(default=100.0, ge=0, allow_inf_nan=False)
    patience_ms: float = Field(default=1500.0, ge=0, allow_inf_nan=False)
    max_tokens: int = Field(default=64, ge=1, le=1024)
    multiline: Multiline = "auto"
    trigger: Literal["automatic", "manual"] = "automatic"
    languages: dict[str, bool] = Field(default_factory=dict)
    suggest_in_comments: bool = True
    suggest_in_strings: bool = True
    context: bool = True
    index: IndexSettings = Field(default_factory=IndexSettings)
    remote: RemoteSettings = Field(default_factory=RemoteSettings)
    repository_memory: MemoryWish = "auto"
    eagerness: float = Field(default=0.6, ge=0, le=1)
    temperature: float = Field(default=0.0, ge=0, le=2)
    candidates: int = Field(default=1, ge=1, le=8)
    shadow: float = Field(default=0.0, ge=0, le=1)

    @field_validator("drafters")
    @classmethod
    def _known(cls, drafters: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in drafters if name not in DRAFTERS]:
            raise ValueError(f"{_cut(unknown[0])} is none of {', '.join(DRAFTERS)}")
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

    @property
    def silent_in(self) -> frozenset[Surroundings]:
        """In what nothing is suggested while somebody types."""
        wanted: dict[Surroundings, bool] = {
            "comment": self.suggest_in_comments,
            "string": self.suggest_in_strings,
        }
        return frozenset(place for place, is_wanted in wanted.items() if not is_wanted)


@dataclass(frozen=True, slots=True)
class Merged:
    """Settings, and a sentence for each value that could not be taken."""

    settings: Settings
    problems: tuple[str, ...] = ()


AnyModel = TypeVar("AnyModel", bound=BaseModel)

GROUPS: dict[str, type[BaseModel]] = {"index": IndexSettings, "remote": RemoteSettings}


def merge(base: Settings, values: object, source: str) -> Merged:
    """`base` with the user's or machine's `values` over it, key by key; a bad one leaves what held before.

    `source` names the origin in messages, as in "config.toml".
    """
    if reason := excess(values):
        return Merged(base, (f"{source}: the settings are ignored: {reason}.",))
    reader = Reader(source)
    settings = reader.overlay(base, values)
    return Merged(settings, summed_up(reader.all_problems(), source))


class Reader:
    """Takes values from one source key by key and collects what is wrong with them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._problems: list[str] = []
        self._unknown: list[tuple[str, str]] = []

    def all_problems(self) -> list[str]:
        """A sentence for each bad value, and one for all that is no setting."""
        if not self._unknown:
            return self._problems
        if len(self._unknown) == 1:
            ((name, suggestion),) = self._unknown
            said = f"there is no setting {_cut(name)}.{suggestion}"
        else:
            named = ", ".join(_cut(name) for name, _ in self._unknown[:_MAX_NAMED])
            num_more = len(self._unknown) - _MAX_NAMED
            said = f"there are no settings {named}{f' and {num_more} more' if num_more > 0 else ''}."
        return [*self._problems, f"{self.source}: {said}"]

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
        for key, value in nested(values).items():
            path = f"{group}.{key}" if group else key
            if (name := names.get(key, "")) == "":
                if path in EDITORGROUPS:
                    continue
                suggestion = _suggestion(key, names) if len(self._unknown) < _MAX_NAMED else ""
                self._unknown.append((path, suggestion))
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
        self._problems.append(f"{self.source}: {problem}")


def summed_up(problems: Sequence[str], source: str) -> tuple[str, ...]:
    """At most `_MAX_PROBLEMS` sentences."""
    if len(problems) <= _MAX_PROBLEMS:
        return tuple(problems)
    num_more = len(problems) - _MAX_PROBLEMS + 1
    return (*problems[: _MAX_PROBLEMS - 1], f"{source}: {num_more} more values cannot be taken.")


def nested(values: Mapping[Any, Any]) -> dict[str, Any]:
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


def _shown(value: object) -> str:
    """A value as it would be written in a settings file, cut to what a message can hold."""
    return _cut(json.dumps(value, default=str))


def _cut(text: str) -> str:
    """A text that a message can hold, in visible characters."""
    plain = text if text.isascii() and text.isprintable() else json.dumps(text)
    return plain if len(plain) <= 60 else f"{plain[:57]}..."


def _suggestion(key: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(key, known, n=1) if len(key) <= _MAX_KEY_CHARS else []
    return f" Did you mean {close[0]}?" if close else ""
