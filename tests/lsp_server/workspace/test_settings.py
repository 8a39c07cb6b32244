"""Settings: each bad value is named and left out alone, layers win in order, a repository only narrows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from lsp_server.handlers.prefetching import suppressed_in
from lsp_server.workspace.session import is_enabled
from lsp_server.workspace.settings import IndexSettings, Settings, all_settings
from lsp_server.workspace.settings_layers import Configuration, narrow
from lsp_server.workspace.settings_reading import merge

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    ["target", "drafters", "maxTokens", "deadlineMs", "multiline", "trigger", "languages", "index",
     "index.exclude", "index.maxFiles", "eagerness", "patienceMs", "device", "remote",
     "remote.url", "nonsense", "suggestInComments", "suggestInStrings"]
)  # fmt: skip


def test_good_values_are_taken() -> None:
    values = {
        "target": "qwen2.5-coder-1.5b",
        "drafters": [],
        "deadlineMs": 0,
        "languages": {"markdown": False},
        "index": {"maxFiles": 10, "exclude": ["dist/**"]},
    }
    merged = merge(Settings(), values, "test")
    settings = merged.settings
    assert merged.problems == ()
    assert (settings.target, settings.drafters, settings.deadline_ms) == ("qwen2.5-coder-1.5b", (), 0)
    assert (settings.index.max_files, settings.index.exclude) == (10, ("dist/**",))
    assert not is_enabled(settings, "markdown")
    assert is_enabled(settings, "python")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"maxTokens": "many"}, 'maxTokens must be a whole number from 1 to 1,024, not "many".'),
        ({"maxTokens": True}, "maxTokens must be a whole number from 1 to 1,024, not true."),
        ({"maxTokens": 0}, "not 0. Slipstream uses 64."),
        ({"deadlineMs": -1}, "deadlineMs must be a number, 0 or more, not -1. Slipstream uses 100."),
        ({"multiline": "sometimes"}, 'multiline must be one of auto, never, always, not "sometimes".'),
        ({"drafters": ["magic"]}, "drafters must be a list out of ngram, neural, not"),
        ({"drafters": "ngram"}, "drafters must be a list"),
        ({"languages": {"python": "yes"}}, "languages must be a table of names with true or false, not"),
        ({"index": {"maxFiles": "all"}}, "index.maxFiles must be a whole number from 0 to 1,000,000, not"),
        ({"index.maxFiles": "all"}, "index.maxFiles must be a whole number"),
        ({"index": {"enabled": 1}}, "index.enabled must be true or false, not 1. Slipstream uses true."),
        ({"index": {"exclude": "a"}}, 'index.exclude must be a list of texts, not "a". Slipstream uses [].'),
        ({"index": 7}, "index must be a table of settings, not 7. It is ignored."),
        ({"target": ""}, 'target must be a text that is not empty, not "". Slipstream uses "auto".'),
        ({"remote.url": "x" * 501}, "remote.url must be a text of at most 500 characters, not"),
        ({"draftModel": None, "draft": 1}, "there is no setting draft."),
        ({"draftModel": 5}, 'draftModel must be a text, not 5. Slipstream uses "".'),
        ({"maxToken": 3}, "Did you mean maxTokens?"),
        ({"temperature": 0.5, "candidates": 5}, "there are no settings temperature, candidates."),
        ("fast", 'the settings must be a table of settings, not "fast"'),
    ],
)
def test_a_bad_value_is_named_and_the_others_hold(values: Any, said: str) -> None:
    if isinstance(values, dict):
        values = {**values, "eagerness": 0.7}
    merged = merge(Settings(), values, "config.toml")
    assert len(merged.problems) == 1
    assert said in merged.problems[0]
    assert merged.problems[0].startswith("config.toml: ")
    assert merged.settings == Settings(eagerness=0.7 if isinstance(values, dict) else Settings().eagerness)


@given(st.dictionaries(keys, json_values, max_size=6) | json_values)
def test_no_value_whatever_stops_the_server(values: Any) -> None:
    for merged in (merge(Settings(), values, "a"), narrow(Settings(), values, "b")):
        Settings.model_validate_json(merged.settings.model_dump_json(by_alias=True))


def test_what_belongs_to_the_editors_extension_is_no_problem() -> None:
    values = {"trace": {"server": "off"}, "server.path": "/usr/bin/slipstream", "editor": {"delayMs": 50}}
    assert merge(Settings(), values, "x") == merge(Settings(), {}, "x")


@pytest.mark.parametrize("values", [[], {"index": [], "languages": []}, {"index.exclude": []}])
def test_an_empty_list_is_an_empty_table(values: Any) -> None:
    assert merge(Settings(), values, "x") == merge(Settings(), {}, "x")


def test_no_value_of_a_group_keeps_the_group() -> None:
    assert merge(Settings(), {"index": None, "target": None}, "x").settings == Settings()


@given(st.dictionaries(keys, json_values, max_size=6))
def test_a_repository_never_widens(values: dict[str, Any]) -> None:
    base = Settings(max_tokens=32, patience_ms=500.0, suggest_in_comments=False)
    narrowed = narrow(base, values, "r").settings
    for name in (
        "target",
        "drafters",
        "draft_model",
        "device",
        "dtype",
        "deadline_ms",
    ):
        assert getattr(narrowed, name) == getattr(base, name)
    for name in ("max_tokens", "patience_ms"):
        assert getattr(narrowed, name) <= getattr(base, name)
    assert suppressed_in(narrowed) >= suppressed_in(base)
    assert narrowed.index.max_files <= base.index.max_files
    assert set(base.index.exclude) <= set(narrowed.index.exclude)


REMOTE = ["remote.url", "remote.tokenFile", "remote.caFile", "remote.model", "remote.tokenizer"]


@pytest.mark.parametrize("key", ["target", "draftModel", "device", "dtype", "drafters", *REMOTE])
def test_a_repository_that_names_a_model_a_device_or_a_server_is_told_off(key: str) -> None:
    value: Any = {"drafters": [], "device": "cpu", "dtype": "float32"}.get(key, "/evil/model")
    merged = narrow(Settings(), {key: value}, ".slipstream.toml")
    assert merged.settings == Settings()
    assert merged.problems == (
        f".slipstream.toml: a repository may not set {key}."
        " It may only switch features off, exclude files and lower limits.",
    )


def test_a_repository_sends_nothing_elsewhere_however_it_is_written() -> None:
    """The user may have set a server, or none."""
    for base in (Settings(), merge(Settings(), {"remote": {"url": "https://a.example"}}, "user").settings):
        for values in ({"remote": {"url": "https://evil.example"}}, {"remote.url": ""}, {"remote": "evil"}):
            assert narrow(base, values, ".slipstream.toml").settings == base


def test_a_repository_may_disable_ignore_and_limit() -> None:
    values = {
        "trigger": "manual",
        "multiline": "never",
        "maxTokens": 8,
        "languages": {"*": False},
        "index": {"exclude": ["secret/**"], "enabled": False},
    }
    base = Settings(languages={"python": True})
    settings = narrow(base, values, "r").settings
    assert (settings.trigger, settings.multiline, settings.max_tokens) == ("manual", "never", 8)
    assert not is_enabled(settings, "python")
    assert settings.index.exclude == ("secret/**",)
    assert not settings.index.enabled


def test_later_layers_win_and_a_repository_narrows_what_they_made() -> None:
    configuration = Configuration()
    configuration.set_layer("the editor's settings", {"maxTokens": 40})
    configuration.set_layer("config.toml", {"maxTokens": 10, "deadlineMs": 50})
    folder = Path("/repository")
    assert configuration.set_repository(folder, {"maxTokens": 100}) == ()
    assert configuration.settings.max_tokens == configuration.of(folder).max_tokens == 40
    assert configuration.settings.deadline_ms == 50
    configuration.set_layer("the editor's settings", {"maxTokens": 200})
    assert (configuration.of(folder).max_tokens, configuration.of().max_tokens) == (100, 200)
    configuration.drop_repository(folder)
    assert configuration.of(folder).max_tokens == 200


@pytest.mark.parametrize("key", ["k", "\u202eevil\n", "k" * 2_000], ids=["plain", "hidden", "long"])
@pytest.mark.parametrize("take", [merge, narrow])
def test_however_many_keys_are_unknown_one_sentence_names_a_few(take: Any, key: str) -> None:
    problems = take(Settings(), {f"{key}{number}": 1 for number in range(50)}, "x").problems
    assert len(problems) == 1
    assert "and 47 more" in problems[0]
    assert len(problems[0]) < 300
    assert problems[0].isascii()
    assert problems[0].isprintable()


def test_however_many_values_are_bad_a_few_are_named() -> None:
    values = dict.fromkeys((to_camel(name) for name in Settings.model_fields), "\u0007" * 100)
    for merged in (merge(Settings(), values, "x"), narrow(Settings(), values, "x")):
        assert len(merged.problems) == 5
        assert "more values are not valid" in merged.problems[-1]
        assert max(map(len, merged.problems)) < 400


def nested(depth: int) -> Any:
    value: Any = 1
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    [nested(100_000), list(range(100_000)), "x" * (1 << 21), 1 << 20_000, {"a" * (1 << 21): 1}],
    ids=["deep", "many", "long", "large", "key"],
)
@pytest.mark.parametrize("key", ["index", "maxTokens", "nonsense", "languages"])
def test_settings_that_are_too_much_are_ignored_with_one_sentence(value: Any, key: str) -> None:
    for merged in (merge(Settings(), {key: value}, "x"), narrow(Settings(), {key: value}, "x")):
        assert not merged.is_whole
        assert merged.settings.model_copy(update={"index": IndexSettings()}) == Settings()
        assert len(merged.problems) == 1
        assert "ignored" in merged.problems[0]


@pytest.mark.parametrize("pattern", ["!private/**", "a\n!private/**"])
def test_a_repository_cannot_take_back_what_the_user_excludes(pattern: str) -> None:
    base = merge(Settings(), {"index": {"exclude": ["private/**"]}}, "config.toml").settings
    merged = narrow(base, {"index": {"exclude": [pattern, "dist/**"]}}, ".slipstream.toml")
    assert merged.settings.index.exclude == ("private/**", "dist/**")
    assert "may not include files again" in merged.problems[0]


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_time_is_a_number(value: float) -> None:
    assert merge(Settings(), {"deadlineMs": value, "patienceMs": value}, "x").settings == Settings()


def test_a_bad_value_of_a_repository_narrows_nothing() -> None:
    base = Settings(max_tokens=100, index=IndexSettings(exclude=("!kept",)))
    merged = narrow(base, {"maxTokens": "many"}, ".slipstream.toml")
    assert merged.settings == base
    assert merged.problems == (
        '.slipstream.toml: maxTokens must be a whole number from 1 to 1,024, not "many".'
        " Slipstream uses 100.",
    )


def test_a_choice_has_a_sentence_for_each_value_or_none() -> None:
    for setting in all_settings():
        assert [*setting.about.choices] in ([], setting.schema.get("enum")), setting.key


def test_a_repository_may_only_change_what_a_workspace_may_set() -> None:
    assert not [row.key for row in all_settings() if row.about.narrow and row.about.is_machine_wide]
    assert {row.key for row in all_settings() if row.about.narrow in {"manual", "never", "off"}} == {
        "trigger",
        "multiline",
        "repositoryMemory",
        "nextEdit",
    }
    for row in all_settings():
        if row.about.narrow in {"manual", "never", "off"}:
            assert row.about.narrow in row.schema["enum"]


def test_models_programs_paths_and_servers_belong_to_the_machine() -> None:
    machine_wide = {row.key for row in all_settings() if row.about.is_machine_wide}
    assert machine_wide == {"target", "draftModel", "device", "dtype", *REMOTE}
