"""One recording, walked at any eagerness: text saved and shown wrong, and each request sent once."""

from __future__ import annotations

from pathlib import Path

import pytest

from completion_engine.errors import UserError
from completion_engine.request import Forecast
from lsp_server.scripted_typing.screen import ScreenLog
from lsp_server.scripted_typing.typing_plan import plan_typing
from tests.benchmarks.eagerness.curve import shows, walk
from tests.benchmarks.eagerness.forecasts import Forecasts
from tests.benchmarks.eagerness.stretches import drawn_modules

CODE = "import os\n\n\ndef area(width, height):\n    product = width * height\n    return product\n"
START = CODE.index("def")
PLAN = plan_typing(CODE, start=START, end=len(CODE))


class Model:
    """Writes the rest of the line, token by token, then a wrong token with a small probability."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, left: str, _right: str) -> Forecast:
        self.asked.append(left)
        if not CODE.startswith(left):
            return Forecast()
        tokens = [*CODE[len(left) : CODE.find("\n", len(left))], " wrong"]
        ends = tuple(sum(map(len, tokens[: n + 1])) for n in range(len(tokens)))
        shares = (*(0.999 for _ in tokens[1:]), 0.2)
        return Forecast("".join(tokens), ends, shares, ends[-1])


def walked(forecasts: Forecasts, eagerness: float) -> ScreenLog:
    return walk(PLAN, shows(forecasts.at, "python", eagerness))


def test_what_is_unlikely_is_not_shown_and_what_is_likely_is_spared() -> None:
    forecasts = Forecasts(None, Model().ask)
    careful, eager = walked(forecasts, 0.5), walked(forecasts, 0.97)
    assert careful.num_wrong == 0 < eager.num_wrong
    assert careful.num_accepted_chars > 0.5 * PLAN.num_chars


def test_a_recording_answers_every_eagerness_without_asking_again(tmp_path: Path) -> None:
    path, model = tmp_path / "recording.jsonl", Model()
    first = {eagerness: walked(Forecasts(path, model.ask), eagerness) for eagerness in (0.5, 0.97)}
    num_asked = len(model.asked)
    assert len(set(model.asked)) == num_asked
    again = Forecasts(path, model.ask)
    assert {eagerness: walked(again, eagerness) for eagerness in first} == first
    assert (len(model.asked), again.num_asked) == (num_asked, 0)


@pytest.mark.parametrize("text", ["nonsense\n", "{}\n", '{"place": 1, "text": "", "ends": "x"}\n'])
def test_what_is_no_recording_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recording.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="is not a recording"):
        Forecasts(path, Model().ask)


def test_modules_are_drawn_from_as_many_projects_as_can_be(tmp_path: Path) -> None:
    for project, num_files in (("one", 3), ("two", 1), ("three", 2)):
        for number in range(num_files):
            path = tmp_path / project / f"{number}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text("x = 1\n" * 1_000)
    (tmp_path / "two" / "small.py").write_text("x = 1\n")
    drawn = drawn_modules(tmp_path, 3, seed=1)
    assert {project.name for project, _ in drawn} == {"one", "two", "three"}
    assert drawn == drawn_modules(tmp_path, 3, seed=1)
    assert len(drawn_modules(tmp_path, 99, seed=1)) == 6
