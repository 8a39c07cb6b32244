"""Measures what a person waits for in VS Code: from the last key to the suggestion on the screen.

Run as `python -m tests.benchmarks.vscode_latency`, after `make editors`: the real workbench, the packaged
extension, the real server with the settings as they come. Owns the way of measuring; does not depend on the
page.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from completion_engine.config import DEFAULT_TARGET
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


@dataclass(frozen=True, slots=True)
class Sample:
    """The last key before a suggestion; all in milliseconds.

    From the key to the request at the server's door, to the answer there, to the suggestion on the screen.
    """

    to_request: float
    in_server: float
    to_screen: float

    @property
    def total(self) -> float:
        return self.to_request + self.in_server + self.to_screen


STAGES = {
    "to_request": "key to request (editor)",
    "in_server": "request to answer (server)",
    "to_screen": "answer to screen (editor)",
    "total": "key to suggestion",
}


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
    return [
        Sample(one.asked_at_ms - pressed, one.answered_at_ms - one.asked_at_ms, shown - one.answered_at_ms)
        for one in mine[-1:]
    ]


def report(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """Median, quartiles and 95th percentile of each stage."""
    found = {}
    for name in STAGES:
        values = [getattr(sample, name) for sample in samples]
        low, median, high = statistics.quantiles(values, n=4)
        p95 = statistics.quantiles(values, n=20)[-1]
        found[name] = {"p50": median, "p25": low, "p75": high, "p95": p95}
    return found


def main() -> int:
    """Print the table and, last, one line of JSON."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="slipstream-benchmark-") as scratch:
        folder, profile = Path(scratch) / "samples", Path(scratch) / "profile"
        folder.mkdir()
        command = [sys.executable, recorder.__file__, str(profile / "recordings"), *SERVER]
        with (
            workbench.running(
                profile,
                vsix=extension.package(),
                machine_settings={"slipstream.server.command": command, "slipstream.target": DEFAULT_TARGET},
                env={"SLIPSTREAM_INDEX_DIR": str(profile / "index")},
            ) as started,
            browsing() as browser,
            Window.on(browser, started.url(folder), folder) as window,
        ):
            window.wait_until_up()
            window.wait_until_ready()
            window.open("samples.py", KNOWN)
            (recording,) = recorder.recordings(profile / "recordings")
            samples = measure(window, recording)
    if len(samples) < NUM_NEEDED:
        sys.stderr.write(f"Only {len(samples)} places brought a suggestion; that is too few to tell.\n")
        return 1
    found = report(samples)
    lines = [f"Load of the machine at the start: {load:.1f} on {os.cpu_count()} cores"]
    lines += [f"VS Code, {len(samples)} new places, ms{'p50':>13}{'p25':>8}{'p75':>8}{'p95':>8}"]
    lines += [f"{STAGES[name]:<32}" + "".join(f"{ms:8.0f}" for ms in found[name].values()) for name in STAGES]
    lines.append(json.dumps({"editor": "vscode", "num_places": len(samples), "ms": found}))
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
