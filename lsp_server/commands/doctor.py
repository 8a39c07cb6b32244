"""`slipstream doctor`: the state of the machine and of a team's servers, and what to do about problems.

Must not change anything on the machine, except that a load stores its measurements. The look at servers
connects as the server does when it loads, and completes a text of its own: it must not send any of a person's
text.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from completion_engine.choice.choice import (
    BUDGET_P95_MS,
    JUDGED_ROWS,
    PASSES_AT_P95,
    PASSES_AT_P95_DRAFTED,
)
from completion_engine.config import AUTO
from completion_engine.errors import SlipstreamError
from lsp_server.commands import machine_checks as machine
from lsp_server.commands.local_engine import (
    choose_target,
    load_engine,
    repository_of,
    settings_for,
    with_target,
)
from lsp_server.commands.machine_checks import CHECK_STATES, Check, guarded, rated
from lsp_server.commands.terminal import new_app, progress_bar, show_rows, write_json
from lsp_server.sharing.host_connection import running_hosts
from lsp_server.workspace.settings_reading import user_file

if TYPE_CHECKING:
    from completion_engine.remote.completer import RemoteCompleter
    from completion_engine.request import Progress
    from lsp_server.workspace.settings import Settings

app = new_app()

_SLOW_LOAD_S = 30.0
_FIRST = ("model", "speed")  # the two rows that matter
_DETAILS = ("target pass", "prompt token")
# The last word is typed in part, as it usually is when a suggestion is requested.
_TEXT = ("def add(first, second):\n    return first + second\n\n\nresult = ad", "\nprint(result)\n")
_NUM_TOKENS = 8
_PATIENCE_MS = 60_000.0  # a server's first answer after its start may take that long


@app.command()
def doctor(
    *,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also show the times of passes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, with all rows.")] = False,
) -> None:
    """Report what is missing or slow on this machine, and what to do about it."""
    with progress_bar(quiet=as_json) as report:
        report("Checking the machine", 0, 0)
        checks = [*guarded("machine", machine.machine_checks)]
        checks += guarded("settings", lambda: _settings_checks(repository_of(Path.cwd()), report))
    checks.sort(key=lambda check: _FIRST.index(check.name) if check.name in _FIRST else len(_FIRST))
    worst = max((check.state for check in checks), key=CHECK_STATES.index)
    if as_json:
        write_json({"state": worst, "checks": [check._asdict() for check in checks]})
    else:
        shown = [check for check in checks if verbose or not check.name.startswith(_DETAILS)]
        show_rows("slipstream doctor", ("what", "state", "found", "what to do"), shown)
    if worst == "missing":
        raise typer.Exit(1)


def _settings_checks(root: Path, report: Progress) -> Iterator[Check]:
    """Check the settings for work in `root`, and what they name."""
    merged = settings_for(root)
    yield from guarded("model", lambda: _model_checks(merged.settings, root, report))
    yield from guarded("servers", lambda: server_checks(merged.settings, report))
    yield from guarded("shared by windows", lambda: _sharing_checks(running_hosts(os.environ)))
    yield from (Check("settings", "slow", problem, "Correct or remove it.") for problem in merged.problems)
    if not merged.problems:
        path = user_file()
        found = "no problems" if path.exists() else "not there, so all are defaults"
        yield Check("settings", "ok", f"{path}: {found}")


def _sharing_checks(hosts: Iterable[dict[str, Any]]) -> Iterator[Check]:
    """The processes that serve editor windows together, and what each holds."""
    state = "no process runs"
    for host in hosts:
        engines = [
            f"{'auto: ' if engine['setting'] == AUTO != engine['target'] else ''}{engine['target']}"
            f" ({engine['state']})"
            for engine in host["engines"]
        ]
        num_windows, gigabytes = host["num_windows"], host["num_memory_bytes"] / 1e9
        windows = "1 window" if num_windows == 1 else f"{num_windows} windows"
        state = f"process {host['pid']}: {windows}, {gigabytes:.1f} GB, {', '.join(engines) or 'no engine'}"
        yield Check("shared by windows", "ok", state)
    if state == "no process runs":
        yield Check("shared by windows", "ok", state)


def _model_checks(settings: Settings, root: Path, report: Progress) -> Iterator[Check]:
    """Check the model: whether it is here, how fast it is, and whether `root` is indexed in its tokens."""
    from completion_engine.models import ModelStore  # noqa: PLC0415 - not needed for help

    store = ModelStore()
    yield machine.disk_check(store.root)
    named = with_target(settings)
    known = {model.spec.id: model.is_ready for model in store.list()}
    if is_there := known.get(named.target, True):
        checks = guarded("model", lambda: _engine_checks(named, root, report))
    else:
        pull = f"Run: slipstream models pull {named.target}"
        checks = [Check("model", "missing", f"{named.target} is not in the store", pull)]
        checks += guarded("kernel", lambda: machine.expected_kernel_check(settings.dtype, settings.device))
    yield from guarded("target", lambda: _target_checks(settings, named.target if is_there else ""))
    yield from checks


def _target_checks(settings: Settings, loaded: str) -> Iterator[Check]:
    """The model of suggestions, why, and the price of the next larger one; `loaded` is in memory."""
    if settings.target != AUTO:
        yield Check("target", "ok", f"{settings.target}, by the settings")
        return
    choice = choose_target(settings, loaded)
    meanwhile = "" if choice.target == choice.start else f"; {choice.start} until an editor has moved to it"
    yield Check("target", "ok", f"auto: {choice.reason}{meanwhile}")
    if choice.next_up:
        yield Check("next larger target", "ok", choice.next_summary)


def _engine_checks(settings: Settings, root: Path, report: Progress) -> Iterator[Check]:
    """Load the model and report what it costs here, as measured now or found at an earlier load."""
    from ngram_cache.saved_index import num_saved_bytes  # noqa: PLC0415 - loads numpy

    start = time.perf_counter()
    loaded = load_engine(settings, report)
    load_s = time.perf_counter() - start
    engine = loaded.describe()
    gigabytes = engine["num_weight_bytes"] / 1e9
    found = f"{engine['target']}: {gigabytes:.2f} GB on {engine['device']} in {engine['dtype']}"
    yield Check("model", "ok", found)
    from lsp_server.commands.machine_checks import backend_check  # noqa: PLC0415 - loads torch

    yield backend_check(engine.get("backend", ""), engine.get("backend_reason", ""))
    advice = "The first load compiles for this processor. A faster disk or more memory may help."
    yield rated("loading", f"{load_s:.1f} s", load_s < _SLOW_LOAD_S, advice)
    yield from machine.kernel_check(loaded.target.precision, loaded.target.device)
    yield _speed_check(engine["pass_ms"], has_drafter="neural" in engine["drafters"])
    for width, ms in engine["pass_ms"].items():
        yield Check(f"target pass, width {width}", "ok", f"{ms:.1f} ms")
    yield Check("prompt token", "ok", f"{loaded.target.prompt_token_ms:.2f} ms")
    names, num_bytes = ", ".join(engine["drafters"]), engine["num_drafter_bytes"]
    size = f" ({num_bytes / 1e6:.0f} MB)" if num_bytes else ""
    yield Check("drafters", "ok", f"{names or 'none: plain decoding'}{size}")
    num_saved = num_saved_bytes(root, loaded.tokenizer.fingerprint)
    none_yet = f"none yet for {root}: an editor builds it, or slipstream index {root}"
    yield Check("index", "ok", f"{num_saved / 1e6:.1f} MB for {root}" if num_saved else none_yet)


def _speed_check(pass_ms: Mapping[str, float], *, has_drafter: bool) -> Check:
    """Estimate the time of suggestions from the passes, as `auto` does."""
    rows = next((width for width in sorted(pass_ms, key=int) if int(width) >= JUDGED_ROWS), None)
    if rows is None:
        return Check("speed", "ok", "not measured for this model")
    num_passes = PASSES_AT_P95_DRAFTED if has_drafter else PASSES_AT_P95
    answer_ms = num_passes * pass_ms[rows]
    found = f"95 % of suggestions take at most {answer_ms:.0f} ms, by {pass_ms[rows]:.0f} ms for one pass"
    advice = "Close other programs that keep the machine busy. A smaller target, more cores or a GPU help."
    return rated("speed", found, answer_ms <= BUDGET_P95_MS, advice)


def server_checks(settings: Settings, report: Progress) -> list[Check]:
    """Check the servers that the settings name; nothing if they name none."""
    if not settings.remote.url:
        return []
    from completion_engine.models import ModelStore  # noqa: PLC0415 - not needed for help
    from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415 - as above
    from completion_engine.remote.completer import RemoteCompleter  # noqa: PLC0415 - as above
    from completion_engine.remote.outbound_text import LEAVES  # noqa: PLC0415 - as above
    from lsp_server.engine.pool import remote_config, tokenizer_folder  # noqa: PLC0415 - as above

    try:
        folder = tokenizer_folder(settings, lambda name: ModelStore().ensure(name, report))
        tokenizer = load_tokenizer(folder)
        begin = time.perf_counter()
        completer = RemoteCompleter.load(remote_config(settings), tokenizer, report)
    except SlipstreamError as error:
        return [Check("servers", "missing", error.message, error.advice)]
    connected_ms = (time.perf_counter() - begin) * 1e3
    engine = completer.describe()
    answers = _answer_check(completer, settings.patience_ms)
    completer.close()
    who = engine["remote"]["servers"]
    found = f"{who} serves {engine['target']}, with our tokenizer, after {connected_ms:.0f} ms"
    return [Check("servers", "ok", found), answers, Check("what leaves", "ok", f"{LEAVES}, to {who}")]


def _answer_check(completer: RemoteCompleter, patience_ms: float) -> Check:
    """Time a second answer, because the first one may be the first since the server started."""
    from completion_engine.request import CompletionRequest  # noqa: PLC0415 - as above

    try:
        for document in ("first", "second"):
            begin = time.perf_counter()
            request = CompletionRequest(*_TEXT, "python", document, indexed_as="check.py")
            limits: dict[str, Any] = {"deadline_ms": 0, "patience_ms": _PATIENCE_MS, "eagerness": 0.99}
            limits |= {"max_tokens": _NUM_TOKENS, "may_leave": True}
            answer = completer.complete(replace(request, **limits))
            took_ms = (time.perf_counter() - begin) * 1e3
    except SlipstreamError as error:
        return Check("their answers", "missing", error.message, error.advice)
    is_scored = any(probability < 1 for probability in answer.forecast.probabilities)
    scores = "return probabilities" if is_scored else "return no probabilities, so eagerness has no effect"
    found = f"take {took_ms:.0f} ms for a few tokens, and {scores}"
    if took_ms <= patience_ms:
        return Check("their answers", "ok", found)
    advice = (
        f"Requests wait at most {patience_ms:.0f} ms. Raise patienceMs, or ask the servers' administrator."
    )
    return Check("their answers", "slow", found, advice)
