"""Measures what a person waits for in VS Code: from the last key to the suggestion on the screen.

Run as `python -m tests.benchmarks.vscode_latency`, after `make editors`: the real workbench, the packaged
extension, the real server with the settings as they come. With `--growing`, answers are cut, and the time is
that from the notification to the longer text. Owns the way of measuring; does not depend on the page.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from completion_engine.config import DEFAULT_TARGET
from lsp_server.workspace.growth import GREW
from tests.editors import recorder
from tests.editors.answers import Answer, answers
from tests.editors.vscode import extension, workbench
from tests.editors.vscode.window import Window, browsing

# Places before the first that counts: the document's prompt is computed with the first of them.
NUM_WARM_UP = 4
NUM_NEEDED = 30
PATIENCE_MS = 5000
# Faster than the editor asks, so that nothing is suggested before the last key.
KEY_MS = 15
# A person looks at the suggestion before going on.
PAUSE_MS = 400
GROWING = "notification to longer text"
CUT = {"slipstream.deadlineMs": 1, "slipstream.eagerness": 1}

SERVER = [str(Path(sys.executable).parent / "slipstream"), "serve", "--stdio"]
KNOWN = '''"""Statistics of samples."""


def mean(values):
    """The arithmetic mean."""
    return sum(values) / len(values)


def variance(values):
    """The mean of the squared distances from the mean."""
    average = mean(values)
    return sum((value - average) ** 2 for value in values) / len(values)


'''
NAMES = (
    "total", "largest", "smallest", "middle", "spread", "average", "deviation", "squares", "weights",
    "shares", "ranks", "ordered", "unique", "missing", "positive", "negative", "lower", "upper",
    "quartiles", "histogram", "outliers", "scaled", "shifted", "rounded", "running", "pairs", "errors",
)  # fmt: skip
TYPED = [f"{name} = " for name in NAMES] + [f"def {name}(" for name in NAMES]


STAGES = (
    "key to request (editor)", "request to answer (server)", "answer to screen (editor)", "key to suggestion",
)  # fmt: skip
Sample = tuple[float, ...]  # each of `STAGES` for the last key before a suggestion, in milliseconds


def measure(window: Window, recording: Path) -> list[Sample]:
    """Type the beginning of a new statement, stop, wait for the suggestion; then take it all away again.

    So every suggestion is one that the model has to write. A place where one came too early does not count.
    """
    samples: list[Sample] = []
    window.press("Control+End")
    for text in TYPED:
        window.type(text, delay_ms=KEY_MS)
        pressed = window.keys()[-1].at_ms
        if shown := _shown_at(window, pressed):
            samples += _explained(pressed, shown, list(answers(recorder.read(recording))))
        window.page.wait_for_timeout(PAUSE_MS)
        window.press("Escape", "Home", "Shift+End", "Delete")
        window.page.wait_for_timeout(PAUSE_MS)
        window.press("Escape")
    return samples[NUM_WARM_UP:]


def measure_growing(window: Window, recording: Path) -> list[float]:
    """Type the head of a function, and look at the suggestion while it grows."""
    for name in NAMES:
        window.open(f"{name}.py", KNOWN)
        window.type(f"def {name}(values):\n", delay_ms=PAUSE_MS / 4)
        window.page.wait_for_timeout(5 * PAUSE_MS)
    shown, keys = [(sight.at_ms, sight.ghost) for sight in window.sights()], window.keys()
    return list(grown_ms(recorder.read(recording), shown, [key.at_ms for key in keys]))


def grown_ms(
    heard: Sequence[recorder.Heard], shown: Sequence[tuple[float, str]], keys: Sequence[float]
) -> Iterator[float]:
    """The time from each notification to the longer text, if it comes before the next of `keys`.

    `shown` is the text from each time on.
    """
    for at_ms in (one.at_ms for one in heard if one.message.get("method") == GREW):
        before = next((text for time_ms, text in reversed(shown) if time_ms <= at_ms), "")
        end_ms = next((key_ms for key_ms in keys if key_ms > at_ms), float("inf"))
        later = (one for one in shown if at_ms < one[0] < end_ms and one[1] != before)
        time_ms, text = next(later, (at_ms, ""))
        if text and text.startswith(before):
            yield time_ms - at_ms


def _shown_at(window: Window, pressed: float) -> float | None:
    """When the first suggestion after that key was drawn; None if one was there with the key already."""
    for _ in range(PATIENCE_MS // 50):
        after = [sight for sight in window.sights() if sight.at_ms > pressed]
        if after and after[0].ghost:
            return None
        for sight in after:
            if sight.ghost:
                return sight.at_ms
        window.page.wait_for_timeout(50)
    return None


def _explained(pressed: float, shown: float, given: Sequence[Answer]) -> list[Sample]:
    """The key as a sample, if the suggestion is the answer to a request that this key caused."""
    mine = [one for one in given if pressed <= one.asked_at_ms and one.answered_at_ms <= shown]
    times = [(pressed, one.asked_at_ms, one.answered_at_ms, shown) for one in mine[-1:]]
    return [(*(end - start for start, end in pairwise(row)), shown - pressed) for row in times]


def percentiles(values: Sequence[float]) -> str:
    """Median, 95th percentile, the spread of the middle half and the maximum, as columns."""
    cuts = statistics.quantiles(values, n=20)
    return f"{cuts[9]:9.1f}{cuts[18]:9.1f}{cuts[14] - cuts[4]:9.1f}{max(values):9.1f}"


def show(editor: str, values: Mapping[str, Sequence[float]]) -> None:
    """Print a table of times in milliseconds."""
    sys.stdout.write(f"{editor + ', ms':34}{'median':>9}{'p95':>9}{'spread':>9}{'max':>9}\n")
    for name, times in values.items():
        sys.stdout.write(f"  {name:32}{percentiles(times)}  ({len(times)})\n")


def main() -> int:
    """Print the table."""
    load, is_growing = os.getloadavg()[0], "--growing" in sys.argv
    settings = {"slipstream.target": DEFAULT_TARGET, **(CUT if is_growing else {})}
    with tempfile.TemporaryDirectory(prefix="slipstream-benchmark-") as scratch:
        folder, profile = Path(scratch) / "samples", Path(scratch) / "profile"
        folder.mkdir()
        command = [sys.executable, recorder.__file__, str(profile / "recordings"), *SERVER]
        with (
            workbench.running(
                profile,
                vsix=extension.package(),
                machine_settings={"slipstream.server.command": command, **settings},
                env={"SLIPSTREAM_INDEX_DIR": str(profile / "index")},
            ) as started,
            browsing() as browser,
            Window.on(browser, started.url(folder), folder) as window,
        ):
            window.wait_until_up()
            window.wait_until_ready()
            window.open("samples.py", KNOWN)
            (recording,) = recorder.recordings(profile / "recordings")
            if is_growing:
                show("VS Code", {GROWING: measure_growing(window, recording)})
                return 0
            samples = measure(window, recording)
    if len(samples) < NUM_NEEDED:
        sys.stderr.write(f"Only {len(samples)} places brought a suggestion; that is too few to tell.\n")
        return 1
    sys.stdout.write(f"Load of the machine at the start: {load:.1f} on {os.cpu_count()} cores\n")
    show("VS Code", dict(zip(STAGES, zip(*samples, strict=True), strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
