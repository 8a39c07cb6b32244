"""The settings: one typed table of names, defaults, limits and the sentence that users read about each.

`python -m scripts.settings_pages` generates the editors' settings pages, their validation and the tables in
docs/settings.md from it.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from completion_engine.config import AUTO, DEFAULT_DRAFTERS, Drafter
from completion_engine.cutting.language_names import canonical_language
from completion_engine.request import MemorySetting
from completion_engine.text_window import Multiline
from lsp_server.workspace.settings_table import About, Setting, rows

_MODEL = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class IndexSettings(BaseModel):
    """The group `index`: which files of a repository are read."""

    model_config = _MODEL

    enabled: Annotated[
        bool,
        About(
            "Index the repository and draft suggestions from it. The index stays on this machine.",
            page="Repository",
            narrow="lower",
        ),
    ] = True
    exclude: Annotated[
        tuple[str, ...],
        About(
            "Files to leave out of the index, as patterns in `.gitignore` syntax. Files that `.gitignore`"
            " names, secrets, binaries and generated files are always left out.",
            page="Repository",
            narrow="exclude",
        ),
    ] = ()
    max_files: Annotated[
        int, Field(ge=0, le=1_000_000), About("The most files to index in one folder.", narrow="lower")
    ] = 20_000


class RemoteSettings(BaseModel):
    """The group `remote`: a team's model servers. Without a URL no text leaves the machine."""

    model_config = _MODEL

    url: Annotated[
        str,
        Field(max_length=500),
        About(
            "The address of your team's model servers, for example `https://models.example.org`. Slipstream"
            " sends them the text around the cursor and snippets of indexed files, without the secrets that"
            " it recognizes. When it is empty, no text leaves this machine.",
            page="Model",
            is_machine_wide=True,
        ),
    ] = ""
    token_file: Annotated[
        str,
        About(
            "A file that holds the bearer token for your team's servers. Only you may be able to read it"
            " (mode 0600).",
            is_machine_wide=True,
        ),
    ] = ""
    ca_file: Annotated[
        str,
        About(
            "A file with the certificates to trust for your team's servers. When it is empty, Slipstream"
            " trusts those of this machine.",
            is_machine_wide=True,
        ),
    ] = ""
    model: Annotated[
        str,
        About(
            "The model's name on your team's servers. When it is empty, Slipstream uses the first model"
            " that they list.",
            is_machine_wide=True,
        ),
    ] = ""
    tokenizer: Annotated[
        str,
        About(
            "A folder with the `tokenizer.json` of your team's model. When it is empty, Slipstream uses the"
            " tokenizer of `target`.",
            is_machine_wide=True,
        ),
    ] = ""


class Settings(BaseModel):
    """All settings with their defaults. Outside Python their keys are written in camelCase."""

    model_config = _MODEL

    trigger: Annotated[
        Literal["automatic", "manual"],
        About(
            "When to suggest.",
            page="Suggestions",
            choices={"automatic": "While you type.", "manual": "Only when you ask for a suggestion."},
            narrow="manual",
        ),
    ] = "automatic"
    languages: Annotated[
        dict[str, bool],
        About(
            "Languages to switch on or off, by identifier. `*` means every language that is not named:"
            ' `{"*": false, "python": true}`.',
            page="Suggestions",
            narrow="languages",
        ),
    ] = {}
    suggest_in_comments: Annotated[
        bool,
        About(
            "Suggest in comments while you type. When you ask for a suggestion, you get one either way.",
            page="Suggestions",
            narrow="lower",
        ),
    ] = True
    suggest_in_strings: Annotated[
        bool,
        About(
            "Suggest in strings while you type; docstrings are strings. When you ask for a suggestion, you"
            " get one either way.",
            page="Suggestions",
            narrow="lower",
        ),
    ] = True
    multiline: Annotated[
        Multiline,
        About(
            "Whether a suggestion may have several lines.",
            page="Suggestions",
            choices={
                "auto": "Several lines where a block begins, one line elsewhere.",
                "never": "One line.",
                "always": "Several lines wherever the code continues.",
            },
            narrow="never",
        ),
    ] = "auto"
    next_edit: Annotated[
        Literal["off", "automatic", "manual"],
        About(
            "Whether to propose your last edit again in other places where it belongs.",
            page="Suggestions",
            choices={
                "off": "Never.",
                "automatic": "When you pause after an edit.",
                "manual": "Only when you ask for the next edit.",
            },
            narrow="off",
        ),
    ] = "automatic"
    max_tokens: Annotated[
        int,
        Field(ge=1, le=1024),
        About(
            "Tokens of the longest suggestion (about ten a line). A first statement may take half more.",
            narrow="lower",
        ),
    ] = 64
    eagerness: Annotated[
        float,
        Field(ge=0, le=1),
        About(
            "How readily to suggest while you type, from 0 to 1. A suggestion ends with the longest line,"
            " item or word that is right with a probability of about 1 - eagerness. 1 shows all of it.",
            page="Suggestions",
            narrow="lower",
        ),
    ] = 0.5
    deadline_ms: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False),
        About(
            "How long to wait before showing a partial suggestion (ms). 0 waits for the whole suggestion.",
            page="Suggestions",
        ),
    ] = 100.0
    patience_ms: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False),
        About(
            "The longest time to continue when no part can be shown at the deadline (ms). At a new cursor"
            " position a fifth of it is for reading the text; while you pause, up to all of it.",
            narrow="lower",
        ),
    ] = 1500.0
    target: Annotated[
        str,
        Field(min_length=1),
        About(
            "The model that completes your code. `auto` is the largest that this machine runs fast enough."
            " To choose one, name an id that `slipstream models` lists, or the path of a model folder or GGUF"
            " file that begins with `/`, `./` or `~`.",
            page="Model",
            is_machine_wide=True,
        ),
    ] = AUTO
    remote: RemoteSettings = RemoteSettings()
    index: IndexSettings = IndexSettings()
    context: Annotated[
        bool,
        About(
            "Show the model definitions and similar snippets from other files of the repository. Slipstream"
            " reads them from the index while the cursor rests.",
            narrow="lower",
        ),
    ] = True
    repository_memory: Annotated[
        MemorySetting,
        About(
            "Whether to bias the model toward what your repository writes in the same context.",
            choices={
                "auto": "For the models that were measured to gain from it.",
                "on": "For every model.",
                "off": "Never: the model alone decides.",
            },
            narrow="off",
        ),
    ] = "auto"
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        About("The device that runs the model.", is_machine_wide=True),
    ] = "auto"
    dtype: Annotated[
        Literal["auto", "bfloat16", "float32", "int8"],
        About(
            "The number format that the model computes with.",
            is_machine_wide=True,
        ),
    ] = "auto"
    drafters: Annotated[
        tuple[Drafter, ...],
        About(
            "The sources of drafts. Drafts change the speed, never the text. An empty list decodes without"
            " drafts."
        ),
    ] = DEFAULT_DRAFTERS
    draft_model: Annotated[
        str,
        About(
            "The folder of a drafter that you trained, instead of the one that is shipped for the model.",
            is_machine_wide=True,
        ),
    ] = ""

    @field_validator("languages")
    @classmethod
    def _named_canonically(cls, languages: dict[str, bool]) -> dict[str, bool]:
        """Return languages by their canonical identifiers, whatever an editor calls them; a `False` wins."""
        found: dict[str, bool] = {}
        for name, is_enabled in languages.items():
            identifier = name if name == "*" else canonical_language(name)
            found[identifier] = is_enabled and found.get(identifier, True)
        return found


@cache
def all_settings() -> tuple[Setting, ...]:
    """Return all settings, in the order of the settings pages."""
    return rows(Settings)
