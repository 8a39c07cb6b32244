"""One block, typed by a scripted typist through a running server, and what came of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from lsp_server.commands.player import Answer, Player
from lsp_server.scripted_typing.screen import ScreenLog
from lsp_server.scripted_typing.typing_plan import TypingPlan, plan_typing, stretch_end
from lsp_server.scripted_typing.typist import Typist
from ngram_cache.redaction import blank_parts
from tests.benchmarks.history.blocks import Block

MAX_BLOCK_CHARS = 600  # so that one large block does not take the time of all others
_SAMPLE_CHARS = 120  # typed of each chosen block when time is short
_MAX_LINES_KEPT = 6
_NUM_CONTEXT_CHARS = 8000  # around a suggestion, which may name a secret in it


@dataclass(frozen=True, slots=True)
class SeenSuggestion:
    """A suggestion that was accepted, or shown wrong.

    Holds no secret. `before` is the line up to the cursor and `wanted` what the author wrote there.
    `num_saved` characters were accepted; `num_wrong` were shown and are not in the file. `sources` are those
    of its parts.
    """

    path: str
    commit: str
    before: str
    text: str
    wanted: str
    num_saved: int
    num_wrong: int
    ms: float
    sources: tuple[str, ...] = ()


@dataclass(slots=True)
class TypedBlock:
    """The result of one block, or of its beginning. Times are from a key to its answer, in ms.

    `num_keys` would be pressed without suggestions; `screen` has what was shown and accepted.
    """

    block: Block
    num_chars: int = 0
    num_keys: int = 0
    num_failed: int = 0
    first_ms: list[float] = field(default_factory=list)
    warm_ms: list[float] = field(default_factory=list)
    suggestions: list[SeenSuggestion] = field(default_factory=list)
    screen: ScreenLog = field(default_factory=ScreenLog)


def sampled_ends(blocks: Sequence[Block], num_chars: int) -> dict[int, int]:
    """Which blocks to type within about `num_chars`, by their number, and where to end each.

    If they are too long to type all, the choice is spread evenly over the typed characters. So the sample
    holds more than the first files of a commit, and more than its small changes.
    """
    lengths = [min(block.num_chars, MAX_BLOCK_CHARS) for block in blocks]
    positions = list(accumulate(lengths))
    if not positions or positions[-1] <= num_chars:
        return {number: _whole_lines_end(block, MAX_BLOCK_CHARS) for number, block in enumerate(blocks)}
    num_chosen = max(1, num_chars // _SAMPLE_CHARS)
    step = positions[-1] / num_chosen
    chosen = sorted({bisect_right(positions, step * (at + 0.5)) for at in range(num_chosen)})
    return {number: _whole_lines_end(blocks[number], _SAMPLE_CHARS) for number in chosen}


def _whole_lines_end(block: Block, num_chars: int) -> int:
    if block.num_chars <= num_chars:
        return block.end
    return min(block.end, stretch_end(block.text, block.start, num_chars))


def plan_of(block: Block, end: int) -> TypingPlan:
    """A person's way of typing the block up to `end`; below it are the old lines."""
    text = block.text[:end] + block.text[block.end :]
    return plan_typing(text, start=block.start, end=end)


async def type_block(player: Player, block: Block, is_over: Callable[[], bool]) -> TypedBlock:
    """Type the plan of a player, a part of `block`, until it is over. Raises SlipstreamError."""
    typed, last_wrong = TypedBlock(block), (0, "")

    async def watch(answer: Answer, person: Typist) -> None:
        """Keep accepted suggestions as examples, and wrong ones once while they stay."""
        nonlocal last_wrong
        if answer.suggestion is not None:
            wrong = person.wrong_part(answer.suggestion)
            num_wrong = len(wrong[1]) if wrong != last_wrong else 0
            taken, last_wrong = person.consider(answer.suggestion), wrong
            if taken or num_wrong:
                num_saved = len(taken.text) if taken else 0
                typed.suggestions.append(_seen(block, person, answer, num_saved, num_wrong))

    player.watch = watch
    for answer in await player.play(is_over):
        typed.num_failed += answer.outcome == "failed"
        if answer.outcome in {"shown", "empty"}:
            (typed.first_ms if answer.is_first else typed.warm_ms).append(answer.ms)
    typed.num_chars = max(0, player.person.offset - player.person.plan.start)
    typed.num_keys, typed.screen = player.person.num_done, player.person.screen
    return typed


def _seen(block: Block, typist: Typist, answer: Answer, num_saved: int, num_wrong: int) -> SeenSuggestion:
    text = answer.suggestion.text if answer.suggestion else ""
    left, wanted = typist.buffer.left[-_NUM_CONTEXT_CHARS:], typist.plan.text[typist.offset : typist.plan.end]
    before = left.rpartition("\n")[2]
    # Redacted here, where the text around shows what a secret is; people pass reports on.
    above = left[: len(left) - len(before)]
    _, shown_before, text = blank_parts(above, before, text)
    _, wanted_before, wanted = blank_parts(above, before, wanted[:_NUM_CONTEXT_CHARS])
    pieces = answer.why.get("pieces") or ()
    sources = dict.fromkeys(piece["evidence"] or piece["source"] for piece in pieces)
    return SeenSuggestion(
        path=block.path,
        commit=block.commit.id,
        before=min(shown_before, wanted_before, key=len),
        text="\n".join(text.split("\n")[:_MAX_LINES_KEPT]),
        wanted="\n".join(wanted.split("\n")[: text.count("\n") + 1][:_MAX_LINES_KEPT]),
        num_saved=num_saved,
        num_wrong=num_wrong,
        ms=round(answer.ms, 1),
        sources=tuple(sources),
    )
