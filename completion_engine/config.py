"""What the engine is built with. Fixed for the life of one engine; a change means a new engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from completion_engine.errors import UserError

DEFAULT_TARGET = "qwen2.5-coder-0.5b"
AUTO = "auto"  # as a setting: the target that the machine carries; see `choice`. No engine is built with it
Drafter = Literal["ngram", "neural"]
DRAFTERS: tuple[str, ...] = get_args(Drafter)
DEFAULT_DRAFTERS: tuple[Drafter, ...] = ("ngram", "neural")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Target, drafters and the machine to run them on.

    `draft_model` is the path of a trained drafter, a folder that `scripts/distillation` wrote, in place of
    the one that is shipped for the target. `drafts_trees` verifies guesses of all sources in one tree where
    the machine can do that exactly, else their likeliest chain. `prefix_chars` and `suffix_chars` bound the
    text around the cursor that the target sees; 0 takes what suits the device.
    `context_tokens` bounds the repository context in front of it; below 0 it follows from what a token costs.
    `num_slots` places keep their KV cache at the same time.
    """

    target: str = DEFAULT_TARGET
    drafters: tuple[str, ...] = DEFAULT_DRAFTERS
    draft_model: str = ""
    drafts_trees: bool = True
    device: str = "auto"
    dtype: str = "auto"
    prefix_chars: int = 0
    suffix_chars: int = 0
    context_tokens: int = -1
    num_slots: int = 6

    def __post_init__(self) -> None:
        unknown = [name for name in self.drafters if name not in DRAFTERS]
        if unknown:
            raise UserError(
                f"Unknown drafter {unknown[0]!r}.",
                advice=f"Choose from: {', '.join(DRAFTERS)}. An empty list decodes without drafts.",
            )
