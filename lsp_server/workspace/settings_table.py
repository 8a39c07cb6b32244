"""The fields of a settings model as rows, from which settings pages and messages are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Literal, TypeVar

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

AnyModel = TypeVar("AnyModel", bound=BaseModel)
Page = Literal["Suggestions", "Model", "Repository"]
# The changes that a repository may make to a setting: lower it or switch it off, exclude more files, switch
# languages off, or choose this one value.
Narrowing = Literal["lower", "exclude", "languages", "manual", "never", "off"]


@dataclass(frozen=True, slots=True)
class About:
    """The text for users about a setting, and who may set it."""

    sentence: str
    page: Page | None = None  # its page in the editors, or None for an advanced setting of config.toml
    choices: Mapping[str, str] = field(
        default_factory=dict
    )  # a sentence for each value, if there are few values
    is_machine_wide: bool = (
        False  # it names a model, a program, a path or a server, so a workspace must not set it
    )
    narrow: Narrowing | None = None  # None if a repository must not change it


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its key ("index.maxFiles"), its name in Python ("index.max_files") and its JSON Schema.

    `owner` is the model that holds it.
    """

    key: str
    attribute: str
    about: About
    schema: Mapping[str, Any]
    owner: type[BaseModel]

    def parse(self, value: object) -> Any:
        """Return a JSON value in the setting's type. Raises ValidationError."""
        value = {} if value == [] and self.schema["type"] == "object" else value
        data = json.dumps({self.key.rpartition(".")[2]: value}, default=str)
        return getattr(self.owner.model_validate_json(data), self.attribute.rpartition(".")[2])

    def of(self, settings: BaseModel) -> Any:
        """Return the setting's value in `settings`."""
        return attrgetter(self.attribute)(settings)

    def replaced_in(self, settings: AnyModel, value: object) -> AnyModel:
        """Return `settings` with another value of this setting."""
        group, _, name = self.attribute.rpartition(".")
        if group:
            value, name = getattr(settings, group).model_copy(update={name: value}), group
        return settings.model_copy(update={name: value})

    @property
    def default(self) -> Any:
        """The default as a JSON value."""
        return self.schema["default"]

    @property
    def expected(self) -> str:
        """The accepted values, in words that follow "must be"."""
        schema = self.schema
        if "enum" in schema:
            return f"one of {', '.join(schema['enum'])}"
        if "enum" in schema.get("items", {}):
            return f"a list out of {', '.join(schema['items']['enum'])}"
        if schema["type"] == "string":
            return self._expected_text
        return _EXPECTED[schema["type"]] + self._limits

    @property
    def _limits(self) -> str:
        low, high = self.schema.get("minimum"), self.schema.get("maximum")
        if high is not None:
            return f" from {low:,} to {high:,}"
        return "" if low is None else f", {low:,} or more"

    @property
    def _expected_text(self) -> str:
        if "maxLength" in self.schema:
            return f"a text of at most {self.schema['maxLength']} characters"
        return "a text that is not empty" if "minLength" in self.schema else "a text"


_EXPECTED = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list of texts",
    "object": "a table of names with true or false",
}


def groups(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the fields of a model that hold further settings, by their outside names."""
    types = {to_camel(name): info.annotation for name, info in model.model_fields.items()}
    return {
        key: each for key, each in types.items() if isinstance(each, type) and issubclass(each, BaseModel)
    }


def rows(model: type[BaseModel]) -> tuple[Setting, ...]:
    """Return the settings of a model in the order of its fields; a group's settings follow its name."""
    found: list[Setting] = []
    schemas = model.model_json_schema(by_alias=True)["properties"]
    inner = groups(model)
    for name, info in model.model_fields.items():
        key = to_camel(name)
        if key in inner:
            within = rows(inner[key])
            found += [
                replace(row, key=f"{key}.{row.key}", attribute=f"{name}.{row.attribute}") for row in within
            ]
        else:
            (about,) = (note for note in info.metadata if isinstance(note, About))
            found.append(Setting(key, name, about, schemas[key], model))
    return tuple(found)
