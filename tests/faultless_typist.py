"""A scripted typist without typing errors, for tests of what suggestions do at a position."""

from __future__ import annotations

from lsp_server.scripted_typing.typing_plan import plan_typing
from lsp_server.scripted_typing.typist import Typist


def type_until(text: str, offset: int) -> Typist:
    """Return a typist that has typed the first `offset` characters of `text`."""
    plans = (plan_typing(text, start=0, end=len(text), seed=seed) for seed in range(10_000))
    plan = next(plan for plan in plans if all(stroke.kind == "type" for stroke in plan.strokes))
    typist = Typist.at_start(plan)
    while typist.offset < offset:
        typist.press()
    return typist
