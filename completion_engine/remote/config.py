"""Where a team's servers are, as the settings say. Plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """`url` of the servers; the files that hold the bearer token and the certificates to trust, or nothing.

    `model` is what the servers call the target; empty for the first that they name. `tokenizer` is a folder
    with its `tokenizer.json`; empty where the local target's is the same. `prefix_chars`, `suffix_chars` and
    `context_tokens` are as in `EngineConfig`.
    """

    url: str
    token_file: str = ""
    ca_file: str = ""
    model: str = ""
    tokenizer: str = ""
    prefix_chars: int = 0
    suffix_chars: int = 0
    context_tokens: int = -1
