"""The prompts that all peers continue: token ids of infilling prompts with a hole of several lines.

Knows the prompt builder and no peer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from completion_engine.decoding.ending import MAX_NEW_TOKENS
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.prompt import PromptBuilder
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.text_window import TextWindow
from lsp_server.commands.local_engine import Sample
from tests.benchmarks.peers.runs import PeerTask

_HOLE_LINES = 12  # lines taken out below a cursor; the target then has reason to write 64 tokens and more


def widened(sample: Sample, num_lines: int = _HOLE_LINES) -> Sample:
    """The sample with the next lines taken out of its suffix too; one with several lines stays as it is."""
    if "\n" in sample.expected:
        return sample
    lines = sample.suffix.split("\n")  # the first is the rest of the cursor's own line
    taken, kept = lines[1 : 1 + num_lines], lines[1 + num_lines :]
    hole = "\n".join([sample.expected + lines[0], *taken])
    return replace(sample, suffix="\n".join(["", *kept]), expected=hole)


def builder_for(engine: CompletionEngine) -> PromptBuilder:
    """A builder of the engine's own prompts."""
    return PromptBuilder(
        engine.tokenizer,
        TextWindow.for_device(engine.target.device.type),
        max_prompt=engine.target.capacity - 2 * MAX_NEW_TOKENS,
    )


def prompt_tokens(builder: PromptBuilder, tokenizer: Tokenizer, sample: Sample) -> tuple[int, ...]:
    """The prompt's token ids, the healed word put back: no peer but ours could be bound to spell it."""
    prompt = builder.build(sample.name, sample.prefix, sample.suffix)
    return (*prompt.tokens, *tokenizer.encode(prompt.healed.decode("utf-8", errors="replace")))


def tasks_for(engine: CompletionEngine, samples: Iterable[Sample]) -> list[PeerTask]:
    """The tasks of the samples, each once: a prompt seen before would be drafted from its own answer."""
    builder = builder_for(engine)
    found = (
        PeerTask(prompt_tokens(builder, engine.tokenizer, widened(sample)), sample.document)
        for sample in samples
    )
    return list({task.tokens: task for task in found}.values())
