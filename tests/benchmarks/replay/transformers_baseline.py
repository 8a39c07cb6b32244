"""The same positions through transformers' own `generate`: the cost of a completion without Slipstream.

Owns the other model and its clock.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from completion_engine.errors import UserError
from completion_engine.request import Progress
from lsp_server.commands.player import Answer
from lsp_server.commands.replay_report import num_written
from lsp_server.scripted_typing.typist import Typist
from lsp_server.workspace.measurements import percentiles

NUM_PLACES = 8
# Places lie this many answers apart, so that they are spread over the file.
STRIDE = 12
# The server may still write on after its answer; it must not slow the other side down.
SETTLE_S = 2.0


@dataclass(frozen=True, slots=True)
class Timing:
    """One `generate`: milliseconds in all, and for each token after the first."""

    total_ms: float
    token_ms: float


class _TokenClock:
    """A streamer of transformers that notes the time of each token."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, _value: object) -> None:
        """Called with the prompt and then with each token."""
        self.times.append(time.perf_counter())

    def end(self) -> None:
        """Called after the last token."""


class Baseline:
    """The target in transformers: bf16, dynamic cache, greedy, a plain FIM prompt of the same window."""

    def __init__(self, model: Any, tokenizer: Any, num_chars: tuple[int, int]) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._num_chars = num_chars
        if tokenizer.fim is None:
            raise UserError(
                "This target has no FIM tokens, so there is nothing to compare with.",
                advice="Replay without --compare.",
            )

    @classmethod
    def load(cls, engine: dict[str, Any], report: Progress) -> Baseline:
        """The model that the server's `engine` part of the stats names, on the same device."""
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        from completion_engine.models import ModelStore
        from completion_engine.prompting.tokenizer import load_tokenizer
        from completion_engine.text_window import TextWindow

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        report("Loading transformers' model", 0, 0)
        folder = ModelStore().ensure(engine["target"], report)
        # Weights in bytes are our own; transformers then runs what they were made from.
        dtype = torch.bfloat16 if engine["dtype"] == "int8" else getattr(torch, engine["dtype"])
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
        window = TextWindow.for_device(engine["device"].partition(":")[0])
        return cls(model.to(engine["device"]), load_tokenizer(folder), (window.num_before, window.num_after))

    def generate(self, prefix: str, suffix: str, num_tokens: int) -> Timing:
        """Time `num_tokens` new tokens between `prefix` and `suffix`."""
        import torch

        fim, (before, after) = self._tokenizer.fim, self._num_chars
        prompt = [fim.prefix, *self._tokenizer.encode(prefix[-before:])]
        prompt += [fim.suffix, *self._tokenizer.encode(suffix[:after]), fim.middle]
        ids = torch.tensor([prompt], device=self._model.device)
        clock = _TokenClock()
        start = time.perf_counter()
        self._model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            min_new_tokens=num_tokens,
            max_new_tokens=num_tokens,
            do_sample=False,
            pad_token_id=0,
            streamer=clock,
        )
        total_ms = (time.perf_counter() - start) * 1000
        first, last = clock.times[1], clock.times[-1]  # the very first call brings the prompt
        return Timing(total_ms, (last - first) * 1000 / max(1, num_tokens - 1))


@dataclass(slots=True)
class Comparison:
    """A sample of the replay's places with both times, taken in turn."""

    num_seen: int = 0
    ours_ms: list[float] = field(default_factory=list)
    ours_token_ms: list[float] = field(default_factory=list)
    theirs: list[Timing] = field(default_factory=list)

    async def consider(self, baseline: Baseline, answer: Answer, typist: Typist) -> None:
        """Time the other side at this place, if it is one of the sample."""
        stats = answer.stats
        if answer.is_first or not stats.get("num_forwards"):
            return
        self.num_seen += 1
        if self.num_seen % STRIDE != 1 or len(self.theirs) >= NUM_PLACES:
            return
        await asyncio.sleep(SETTLE_S)
        place = typist.buffer.left, typist.buffer.right
        num_tokens = num_written(stats)
        self.theirs.append(await asyncio.to_thread(baseline.generate, *place, num_tokens))
        self.ours_ms.append(answer.ms)
        self.ours_token_ms.append((stats["ms"]["draft"] + stats["ms"]["verify"]) / num_tokens)

    def as_dict(self) -> dict[str, Any]:
        """Both sides and the ratio of their medians: above 1 when Slipstream is faster."""
        ours, theirs = percentiles(self.ours_ms), percentiles(timing.total_ms for timing in self.theirs)
        ours_token = percentiles(self.ours_token_ms)
        theirs_token = percentiles(timing.token_ms for timing in self.theirs if timing.token_ms)
        return {
            "num_places": len(self.theirs),
            "slipstream_ms": ours,
            "transformers_ms": theirs,
            "ratio_p50": _ratio(theirs["p50"], ours["p50"]),
            "slipstream_token_ms": ours_token,
            "transformers_token_ms": theirs_token,
            "token_ratio_p50": _ratio(theirs_token["p50"], ours_token["p50"]),
        }


def _ratio(theirs: float, ours: float) -> float:
    return round(theirs / ours, 2) if ours else 0.0
