"""The default target itself: it infills, reuses typed prefixes without a pass, and drafts change nothing."""

from __future__ import annotations

import keyword
import re
from dataclasses import replace
from pathlib import Path

import pytest

from completion_engine.config import EngineConfig
from completion_engine.decoding.ending import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.load_engine import load_engine_from
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk
from completion_engine.request import Cancellation, CompletionRequest
from lsp_server.commands.bench_exactness import ExactnessOptions, compare
from tests.benchmarks.samples import from_folder
from tests.prices import make_rows_free

pytestmark = pytest.mark.real_model

BEFORE = '''"""Geometry of rectangles."""


class Rectangle:
    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height

    def area(self) -> float:
        """The area."""
        return self.width * self.height

    def perimeter(self) -> float:
        """The perimeter."""
        ret'''
AFTER = "\n\n\nclass Square(Rectangle):\n    pass\n"


@pytest.fixture(scope="module")
def engine(real_model_dir: Path) -> CompletionEngine:
    """The default engine, whose drafters cost little beside a pass."""
    engine = load_engine_from(real_model_dir, EngineConfig())
    make_rows_free(engine.target, pass_ms=50.0)
    return engine


def request(prefix: str, suffix: str = AFTER) -> CompletionRequest:
    return CompletionRequest(prefix, suffix, "python", "shapes.py", deadline_ms=0)


def test_it_finishes_a_word_and_the_line(engine: CompletionEngine) -> None:
    text = engine.complete(request(BEFORE)).text
    plain = CompletionEngine(EngineConfig(drafters=()), engine.target, engine.tokenizer)
    assert text == plain.complete(request(BEFORE)).text
    assert "\n" not in text
    assert keyword.iskeyword(re.findall(r"\w+", f"ret{text}")[0])
    compile(BEFORE + text + AFTER, "shapes.py", "exec")


def test_typing_along_costs_no_pass_and_shows_the_same_text(engine: CompletionEngine) -> None:
    shown = engine.complete(request(BEFORE)).text
    for num_typed in range(1, len(shown)):
        again = engine.complete(request(BEFORE + shown[:num_typed]))
        assert again.text == shown[num_typed:]
        assert again.stats.num_forwards == 0
        assert again.stats.num_cached_tokens >= again.stats.num_prompt_tokens - 2


def test_the_line_after_a_suggestion_is_written_while_it_is_read(engine: CompletionEngine) -> None:
    before = "def area(width, height):\n    width = float(width)\n    hei"
    shown = engine.complete(request(before, "\n")).text
    while engine.idle(Cancellation()):
        pass
    entered = before + shown + "\n    "
    after = engine.complete(request(entered, "\n"))
    plain = CompletionEngine(EngineConfig(drafters=()), engine.target, engine.tokenizer)
    fresh = plain.complete(request(entered, "\n"))
    assert after.text == fresh.text != ""
    assert after.stats.num_forwards <= 2 < fresh.stats.num_forwards


def test_a_keystroke_beside_the_suggestion_costs_few_passes(engine: CompletionEngine) -> None:
    shown = engine.complete(request(BEFORE))
    other = engine.complete(request(BEFORE + "urn (2 "))
    assert other.stats.num_cached_tokens >= shown.stats.num_prompt_tokens - 2
    assert 1 <= other.stats.num_forwards <= 8


def test_a_deadline_shows_what_is_whole_by_then(engine: CompletionEngine) -> None:
    """The first whole part of a suggestion that the deadline cuts short is shown, not lost."""
    text = "def area(width, height):\n    return width * height\n\n\ndef perimeter(width, height):\n    ret"
    engine.prefetch(request(text, "\n"))
    while engine.idle(Cancellation()):  # an answer that waits for its prompt would get more time
        pass
    hurried = engine.complete(replace(request(text, "\n"), deadline_ms=1.0))
    assert hurried.stats.finish_reason == "deadline"
    assert keyword.iskeyword(re.findall(r"\w+", f"ret{hurried.text}")[0])
    whole = engine.complete(request(text, "\n")).text
    assert whole.startswith(hurried.text)


@pytest.mark.parametrize(
    ("num_prompts", "window"),
    [(2, {}), (4, {"prefix_chars": 1_000, "suffix_chars": 500})],
    ids=["long", "short"],
)
def test_drafts_change_no_token_of_real_code(
    engine: CompletionEngine, num_prompts: int, window: dict[str, int]
) -> None:
    """A long prompt takes seconds to compute, so two of them are enough beside short ones."""
    tree, chain = engine.beside(**window), engine.beside(drafts_trees=False, **window)
    plain = engine.beside(drafters=(), **window)
    samples = from_folder(Path(__file__).parents[2] / "completion_engine", num_prompts, seed=num_prompts)
    for report in compare({"tree": tree, "chain": chain}, plain, samples, ExactnessOptions(32)).values():
        assert report.num_prompts == num_prompts
        assert report.num_differing == 0
        assert report.num_tokens > report.num_forwards


def test_an_auto_closed_bracket_is_covered(engine: CompletionEngine) -> None:
    completion = engine.complete(
        request('"""Arithmetic."""\n\n\ndef add(', ")\n\n\ndef multiply(a, b):\n    return a * b\n")
    )
    assert re.match(r"[^()]+\)", completion.text)
    assert completion.num_replaced == 1


def test_the_bare_tokens_do_not_depend_on_the_rules(engine: CompletionEngine) -> None:
    bare = engine.write(request(BEFORE), NoRules(), 24).written.text
    assert bare.startswith(engine.complete(request(BEFORE)).text)


CLIENT = """def fetch_user(client, user_id):
    response = client.get_json(f"/users/{user_id}")
    return response


def fetch_team(client, team_id):
    response = client.get_json(f"/teams/{team_id}")
    return response


def fetch_org(client, org_id):
    response = client.request_json(f"/orgs/{org_id}")
    return response
"""


def test_an_edit_that_was_made_twice_is_proposed_again(engine: CompletionEngine) -> None:
    lines = tuple(CLIENT.split("\n"))
    hunks = [Hunk("a", at, (lines[at].replace("get_", "request_"),), (lines[at],)) for at in (1, 6)]
    request = EditRequest([EditDocument("a", "client.py", "python", lines)], hunks, 6)
    proposal = engine.propose_edit(request).proposal
    assert proposal is not None
    assert (proposal.edit.first_line, proposal.edit.new) == (11, (lines[11].replace("request_", "get_"),))
    assert proposal.num_examples == 2


def test_an_edit_that_belongs_nowhere_else_is_not_repeated(engine: CompletionEngine) -> None:
    lines = tuple(CLIENT.replace("request_", "get_").split("\n"))
    hunk = Hunk("a", 1, ("    reply = client.get_json(user_id)",), (lines[1],))
    answer = engine.propose_edit(EditRequest([EditDocument("a", "client.py", "python", lines)], [hunk], 1))
    assert answer.proposal is None
