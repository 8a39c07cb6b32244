"""A tiny target with the tests' tokenizer, as vLLM can serve it.

vLLM's attention on CPUs takes heads of 32 numbers and more, and the target never ends: a test that breaks a
stream off must find it under way.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import write_tiny_model


def write_served_target(folder: Path) -> Path:
    """Writes it, and returns its folder."""
    write_tiny_model(folder, num_heads=2)
    for name in ("config.json", "generation_config.json"):
        fields = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**fields, "eos_token_id": None}))
    facts = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))
    return folder
