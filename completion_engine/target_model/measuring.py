"""Measures a target's passes at load, by width, branches and number of threads, or reuses earlier results.

Runs passes and changes a target's number of threads. Has no access to drafts, prompts or the model's parts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from completion_engine.target_model.exactness import hold_same
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.passes import ROWS, Findings
from completion_engine.target_model.threads import ThreadGovernor, num_threads_here, thread_counts

if TYPE_CHECKING:  # which is measured while it is made
    from completion_engine.target_model.language_model import LanguageModel

_NUM_ROUNDS = 5  # most rounds of measuring passes
_ALIKE = 1.1  # times of a pass that differ by less are not worth another round
_NUM_KNOWN = 64  # tokens before the pass that shows whether threads agree

_BRANCHES, _CHUNK = 0, -1  # keys of passes without a width

_Shapes = Mapping[int, tuple[Sequence[int], ThreadGovernor]]  # parents of a pass's rows, and who runs it


def measure(target: LanguageModel) -> Findings:
    """The findings of this load; leaves `target` with the threads that are best now.

    They are final once two runs with all threads active agree, and the quickest time counts. A branch
    costs less than the noise of one pass: use the median over many runs; negative results count as 0.
    """
    found = _time_passes(target, _shapes(target))
    are_final = can_be_final() and all(_came_twice(taken) for taken in found.values())
    with_branches, chunk = found.pop(_BRANCHES, found[ROWS]), found.pop(_CHUNK)
    branch_ms = median(wide - row for wide, row in zip(with_branches, found[ROWS], strict=True))
    pass_ms = {width: min(taken) for width, taken in found.items()}
    target.governor = _choose_threads(target)
    return Findings(
        target.is_row_invariant,
        target.verifies_drafts,
        target.verifies_trees,
        pass_ms,
        max(0.0, branch_ms) / max(1, _num_more_branches(target)),
        target.governor.paces,
        min(chunk),
        are_final,
    )


def can_be_final() -> bool:
    """Whether all threads are free for this one: others disturb what is measured with fewer."""
    return num_threads_here() == max(thread_counts())


def rehearse(target: LanguageModel) -> None:
    """Run passes that need all one-time setup: the fewest rows, the most, and branches.

    Another width then needs only its program, which takes less time to write than to run.
    """
    shapes = _shapes(target)
    wanted = (_CHUNK, min(target.widths), _BRANCHES)
    _time_passes(target, {name: shapes[name] for name in wanted if name in shapes}, num_rounds=0)


def resume(target: LanguageModel, known: Findings) -> Findings:
    """Go on with what is known, with as many threads as are free; runs no pass."""
    paces, num_free = dict(known.thread_paces), num_threads_here()
    target.governor = ThreadGovernor(paces, num_threads=num_free if num_free in paces else None)
    return known


def _num_more_branches(target: LanguageModel) -> int:
    """Branches beyond the first of the pass that shows what they take."""
    return min(target.max_branches, ROWS) - 1


def _shapes(target: LanguageModel) -> _Shapes:
    """Passes by width; a chunk of a prompt; one of `ROWS` rows with branches, where there may be some."""
    shapes: dict[int, Sequence[int]] = {width: range(-1, width - 1) for width in target.widths}
    shapes[_CHUNK] = range(-1, target.chunks.num_rows - 1)
    if num_more := _num_more_branches(target):
        shapes[_BRANCHES] = [*range(-1, ROWS - 1 - num_more), *[0] * num_more]
    return {shape: (parents, target.governor) for shape, parents in shapes.items()}


def _choose_threads(target: LanguageModel) -> ThreadGovernor:
    """As many threads as there are, and fewer for when others need the cores; each with its pace.

    Only those of now where the number of threads would change a bit.
    """
    used = num_threads_here()
    counts = {used, *thread_counts()} if target.device.type == "cpu" else {used}
    governors = {count: ThreadGovernor({count: 1.0}) for count in sorted(counts, reverse=True)}
    if not all(threads_agree(target, governors[used], governors[count]) for count in counts - {used}):
        return governors[used]
    if used < max(counts):
        # Others need the cores now: the value of more threads is measured when the cores are free.
        return ThreadGovernor({count: used / count for count in counts}, num_threads=used)
    parents = range(-1, ROWS - 1)
    found = _time_passes(target, {count: (parents, governor) for count, governor in governors.items()})
    return ThreadGovernor({count: min(taken) / min(found[used]) for count, taken in found.items()})


def threads_agree(target: LanguageModel, governor: ThreadGovernor, other: ThreadGovernor) -> bool:
    """Whether two numbers of threads give the same bits, for narrow passes and for wide ones."""
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(0, target.vocab_size, (_NUM_KNOWN + ROWS,), generator=generator).tolist()
    known, new = tokens[:_NUM_KNOWN], tokens[_NUM_KNOWN:]
    found: list[tuple[Tensor, KVCache]] = []
    for some in (governor, other):
        target.governor = some
        cache = KVCache(target.cache_shape)
        target.forward(known, cache, 0)
        cache.keep(known)
        found.append((target.forward(new, cache, ROWS), cache))
    (logits, cache), (others, other_cache) = found
    return hold_same(cache, other_cache, len(tokens)) and torch.equal(logits, others)


def _time_passes(
    target: LanguageModel, passes: _Shapes, num_rounds: int = _NUM_ROUNDS
) -> dict[int, list[float]]:
    """Milliseconds of some passes, each in turn, until each came twice. A first round makes things ready."""
    cache = KVCache(target.cache_shape)
    cache.pretend(min(512, target.capacity // 2))
    times: dict[int, list[float]] = {name: [] for name in passes}
    for num_done in range(num_rounds + 1):
        for name, (parents, governor) in passes.items():
            target.governor = governor
            begin = time.perf_counter()
            num_logits = 1 if name == _CHUNK else len(parents)
            logits = target.forward([0] * len(parents), cache, num_logits, list(parents))
            logits[0, 0].item()
            if num_done:
                times[name].append((time.perf_counter() - begin) * 1e3)
        if num_done > 1 and all(_came_twice(taken) for taken in times.values()):
            break
    return times


def _came_twice(taken: Sequence[float]) -> bool:
    """Whether the quickest two of some times are alike."""
    quickest, second = sorted(taken)[:2]
    return second < _ALIKE * quickest
