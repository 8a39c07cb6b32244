"""Whole steps of drafted greedy decoding on the device: draft, verify, accept, move into line, in one graph.

The host reads one small tensor a step, and the next step runs meanwhile: its inputs stay on the device.
Drafts come from a trained drafter's search and from the longest run of the same tokens in the written text
and in spans of other text. Does not depend on the meaning of tokens.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from completion_engine.drafting.device_steps import DeviceStep
from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.gpu import launch, launch_step
from completion_engine.gpu.beam_search import BeamSearch
from completion_engine.gpu.decoder import GraphedDecoder
from completion_engine.gpu.launch_step import Found
from completion_engine.gpu.passes import PassShape, Runner, Work, header_of, runner_for, send
from completion_engine.target_model.kv_cache import KVCache

# rows of every pass; meant to cost no more than 8; `python -m tests.benchmarks.gpu` measures it
NUM_ROWS = 16
_MAX_MATCH = 32
_DOUBT = 4.0  # after a run of n tokens the text's weight is n / (n + _DOUBT); see docs/experiments/gpu.md
_NUM_PLACES = 2  # one is read while the other is written
NUM_SLOTS = 16
SLOT_TOKENS = 64
NOTHING = -1  # a token that no text has: spans end with it
_MAX_CONTEXT = 32
Key = tuple[str, int]


class DeviceLoop:
    """See `device_steps.DeviceDecoder`. `search` is None where the target has no trained drafter."""

    max_depth = NUM_ROWS - 1

    def __init__(
        self,
        decoder: GraphedDecoder,
        search: BeamSearch | None,
        num_tokens: int,
        *,
        looks_up: bool = True,
        runner: Runner | None = None,
    ) -> None:
        """`num_tokens` are what the target may write; `looks_up` drafts from text, beside the search."""
        device = decoder.embedding.device
        self._decoder, self._search = decoder, search
        self._buffers = decoder.buffers(PassShape(NUM_ROWS, is_tree=True, wants_logits=True))
        self._found = search.found if search else Found.nothing(device)
        self._text = _text(decoder.heads.capacity, device, looks_up=looks_up)
        self._candidates = launch_step.Candidates.empty(self._found, self.max_depth, self._text)
        self._before, self._after = (launch_step.Start.empty(self._buffers.normed) for _ in range(2))
        self._outcome = launch_step.StepOutcome.empty(self._buffers.logits, num_tokens)
        self._runner = runner or runner_for(device)
        self._read_back = ReadBack(self._outcome.numbers)
        self._spans, self._seen = LookupSpans(), deque[Mapping[int, LookupSpan]]()
        self._run, self._end = 0, 0  # number of this run, and tokens that it knows to be cached

    def can_step(self, cache: KVCache) -> bool:
        """See `DeviceDecoder.can_step`. There has to be room for the step that runs meanwhile too."""
        return 0 < cache.num_cached <= cache.capacity - 2 * NUM_ROWS

    def is_at(self, run: int, cache: KVCache) -> bool:
        """See `DeviceDecoder.is_at`."""
        return run == self._run and cache.num_cached == self._end

    @torch.inference_mode()
    def begin(self, cache: KVCache, path: Sequence[int]) -> int:
        """See `DeviceDecoder.begin`."""
        self._read_back.drop()
        self._seen.clear()
        self._run, self._end = self._run + 1, cache.num_cached
        send(self._text.written[: len(path)], path)
        self._before.inputs.send([*header_of(cache, self._end, NUM_ROWS), path[-1], 0])
        self._before.state.copy_(cache.hidden[self._end - 1 : self._end])
        self._launch()
        return self._run

    @torch.inference_mode()
    def step(self) -> DeviceStep:
        """See `DeviceDecoder.step`. The next one is under way when this one is read."""
        self._launch()
        num_true, next_token, num_rows, *others = self._read_back.read()
        seen = self._seen.popleft()
        tokens, places, chances, rows = (
            others[at * NUM_ROWS + 1 : at * NUM_ROWS + num_true] for at in range(4)
        )  # the first row was true before
        ranked = self._outcome.ranking.rows_of(others[4 * NUM_ROWS :])
        written = zip([0, *rows], [*tokens, next_token], strict=True)
        probabilities = tuple(ranked[row].probability_of(token) for row, token in written)
        self._end += num_true
        accepted = (
            self._guess(depth, token, place, chance / 1e6, seen)
            for depth, (token, place, chance) in enumerate(zip(tokens, places, chances, strict=True))
        )
        return DeviceStep(tuple(accepted), next_token, num_rows - 1, probabilities)

    @torch.inference_mode()
    def hint(self, path: Sequence[int], drafts: Sequence[Draft]) -> None:
        """See `DeviceDecoder.hint`. Text that was read from the prompt is known here."""
        for draft in drafts:
            if draft[0].read_from != "prompt" and (span := self._spans.add(path, draft)):
                send(self._text.spans[span.first : span.first + SLOT_TOKENS], span.tokens)

    def _launch(self) -> None:
        self._runner.run("step", self._work)
        self._before.copy_(self._after)
        self._read_back.post()
        self._seen.append(self._spans.now())

    @property
    def parts(self) -> Mapping[str, Work]:
        """What a step does, in order; together they lead from `_before` to `_after` and the outcome."""
        return {
            "search": self._search_paths,
            "tree": self._build_tree,
            "pass": self._pass,
            "accept": self._accept,
        }

    def _work(self) -> None:
        """The same work every time, to be captured."""
        for part in self.parts.values():
            part()

    def _search_paths(self) -> None:
        if self._search:
            network = self._search.network
            network.follow(self._before.inputs)
            network.first.copy_(self._before.state)
            self._search.compute()

    def _build_tree(self) -> None:
        launch_step.run_score(self._before, self._text, self._found, self._candidates)
        launch_step.run_build_tree(self._before, self._candidates, self._buffers.inputs, self._outcome)

    def _pass(self) -> None:
        self._decoder.compute(self._buffers, wants_logits=True)

    def _accept(self) -> None:
        at, outcome, decoder = self._buffers, self._outcome, self._decoder
        launch.run_rank(at.logits, outcome.ranking)
        launch_step.run_accept(at.inputs, outcome.ranking.picked, at.normed, self._text, self._after, outcome)
        launch.run_move_rows(at.inputs, outcome.sources, decoder.heads, decoder.num_layers, at.normed)

    def _guess(
        self, depth: int, token: int, place: int, chance: float, seen: Mapping[int, LookupSpan]
    ) -> DraftToken:
        """The source of an accepted token: the text, if it had the token."""
        if place < 0:
            return DraftToken(token, "neural", "distilled", depth, chance)
        span = seen.get(place // SLOT_TOKENS) if place < self._text.num_span_tokens else None
        guess = span.guess_at(place) if span else None
        return guess or DraftToken(token, "ngram", "prompt", 0, chance)


def _text(capacity: int, device: torch.device, *, looks_up: bool) -> launch_step.Text:
    num_span_tokens = NUM_SLOTS * SLOT_TOKENS
    tokens = torch.full((num_span_tokens + capacity,), NOTHING, dtype=torch.int64, device=device)
    lengths = torch.arange(_MAX_MATCH + 1, dtype=torch.float32, device=device)
    weights = lengths / (lengths + _DOUBT)
    return launch_step.Text(tokens, num_span_tokens, weights if looks_up else torch.zeros_like(weights))


class ReadBack:
    """Takes copies of one small tensor in the order of `post`; `read` waits for the oldest alone."""

    def __init__(self, source: Tensor) -> None:
        is_cuda = source.is_cuda
        self._source = source
        size = (_NUM_PLACES, *source.shape)
        self._places = torch.zeros(size, dtype=source.dtype, pin_memory=is_cuda)
        self._events = [_event() if is_cuda else None for _ in range(_NUM_PLACES)]
        self._waiting: deque[int] = deque()
        self._num_posted = 0

    def post(self) -> None:
        """Copy the tensor as it will be when the device gets here. ValueError where no place is free."""
        if len(self._waiting) == _NUM_PLACES:
            raise ValueError("read what was posted first")
        at = self._num_posted % _NUM_PLACES
        self._places[at].copy_(self._source, non_blocking=True)
        if (event := self._events[at]) is not None:
            event.record()
        self._waiting.append(at)
        self._num_posted += 1

    def read(self) -> list[int]:
        """The oldest copy that was not read. Waits for it."""
        at = self._waiting.popleft()
        if (event := self._events[at]) is not None:
            event.synchronize()
        numbers: list[int] = self._places[at].tolist()
        return numbers

    def drop(self) -> None:
        """Drop the posted results. Running copies are awaited, so that they do not overwrite later ones."""
        while self._waiting:
            self.read()


def _event() -> torch.cuda.Event:
    return torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch leaves it untyped


@dataclass(frozen=True, slots=True)
class LookupSpan:
    """The likeliest chain of a draft after the tokens that agreed; `first` is its place in all slots."""

    first: int
    context: tuple[int, ...]
    chain: tuple[DraftToken, ...]

    @property
    def tokens(self) -> list[int]:
        """All of its slot, [SLOT_TOKENS]."""
        text = [*self.context, *(guess.token for guess in self.chain)]
        return [NOTHING, *text, *[NOTHING] * (SLOT_TOKENS - 1 - len(text))]

    def guess_at(self, place: int) -> DraftToken | None:
        """The draft token at a place in all slots."""
        at = place - self.first - 1 - len(self.context)
        return self.chain[at] if 0 <= at < len(self.chain) else None


class LookupSpans:
    """The latest span of each document, of few of them; the least recently renewed one makes room."""

    def __init__(self) -> None:
        self._slots: OrderedDict[Key, LookupSpan] = OrderedDict()

    def add(self, path: Sequence[int], draft: Draft) -> LookupSpan | None:
        """Add a draft after `path`; None if it has nothing new."""
        chain = _likeliest_chain(draft)
        if not chain:
            return None
        key = (chain[0].read_from, chain[0].document)
        known = self._slots.pop(key, None)
        first = known.first if known else self._free()
        context = tuple(path[-min(max(1, chain[0].match_length), _MAX_CONTEXT) :])
        span = LookupSpan(first, context, chain[: SLOT_TOKENS - 2 - len(context)])
        self._slots[key] = span
        return None if known == span else span

    def now(self) -> dict[int, LookupSpan]:
        """The spans by slot, as they stand; later changes do not show in it."""
        return {span.first // SLOT_TOKENS: span for span in self._slots.values()}

    def _free(self) -> int:
        """The slot of a new span."""
        if len(self._slots) == NUM_SLOTS:
            return self._slots.popitem(last=False)[1].first
        taken = {span.first for span in self._slots.values()}
        return next(at for at in range(0, NUM_SLOTS * SLOT_TOKENS, SLOT_TOKENS) if at not in taken)


def _likeliest_chain(draft: Draft) -> tuple[DraftToken, ...]:
    """From the best first token always on to the best that follows."""
    best: dict[int, int] = {}
    for at, guess in enumerate(draft):
        if guess.parent not in best or guess.probability > draft[best[guess.parent]].probability:
            best[guess.parent] = at
    chain: list[DraftToken] = []
    at = -1
    while at in best:
        at = best[at]
        chain.append(draft[at])
    return tuple(chain)
