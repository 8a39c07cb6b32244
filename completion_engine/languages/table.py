"""The properties of each language, by any of its names. The only place where the tables come together."""

from __future__ import annotations

from functools import lru_cache

from completion_engine.languages import braces, configuration, functional, hosts, scripts, shells, texts, web
from completion_engine.languages.identifiers import FILE_NAMES, canonical_language
from completion_engine.languages.syntax import Language

LANGUAGES: dict[str, Language] = {
    **braces.BY_IDENTIFIER,
    **web.BY_IDENTIFIER,
    **configuration.BY_IDENTIFIER,
    **scripts.BY_IDENTIFIER,
    **shells.BY_IDENTIFIER,
    **functional.BY_IDENTIFIER,
    **texts.BY_IDENTIFIER,
    **hosts.BY_IDENTIFIER,
}


def language_of(name: str) -> Language:
    """Return what is known of a language; brackets, quotes and indentation alone if it is unknown."""
    return LANGUAGES.get(identifier_of(name), texts.UNKNOWN) if name else texts.UNKNOWN


@lru_cache(maxsize=256)
def identifier_of(name: str) -> str:
    """Return the identifier of a language, those included that stand in others alone."""
    if name in LANGUAGES:
        return name
    return FILE_NAMES.get(name) or canonical_language(name, name)
