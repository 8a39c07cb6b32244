"""One window of the workbench as a person sees and uses it.

Owns the page's selectors and keys. Does not start the workbench.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from playwright.sync_api import Browser, Locator, Page, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from tests.editors.programs import find
from tests.waiting import first_true

OBSERVER = Path(__file__).with_name("observer.js")
STATUS_ITEM = '.statusbar-item[id$="slipstream.status"]'

# A loaded machine is several times slower than a quiet one.
TIMEOUT_S = 300.0
# A suggestion that has not changed for so long is all there will be.
STAYS_MS = 1500
# A list that has not opened or does not hold the row for so long is looked at again.
LIST_MS = 10_000

FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")

# A browser without a GPU draws each frame of the workbench's spinners on a core that the server needs.
STILL = "*, ::before, ::after { animation: none !important }"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Key:
    """A key that went down, in milliseconds since the epoch."""

    at_ms: float
    key: str


@dataclass(frozen=True, slots=True)
class Sight:
    """The line under the cursor as it was on the screen from `at_ms` on.

    `line` is the document's text, `ghost` the suggestion's, `preview` what both together read like.
    """

    at_ms: float
    line: str
    ghost: str
    preview: str


@contextmanager
def browsing() -> Iterator[Browser]:
    """The headless browser."""
    with sync_playwright() as playwright:
        program = find("chromium", "chromium")
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def until(look: Callable[[], T], *, what: str, timeout_s: float = TIMEOUT_S) -> T:
    """The first true value that `look` returns."""
    value = first_true(look, timeout_s, shortest_s=0.05)
    assert value, f"within {timeout_s:.0f} s there was no {what}"
    return value


class Window:
    """A page that shows the workbench on one folder."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page = page
        self.folder = folder

    @classmethod
    @contextmanager
    def on(cls, browser: Browser, url: str, folder: Path, *, scale: float = 1) -> Iterator[Window]:
        """A new window at `url`, closed at the end as a person closes it."""
        size = {"width": 1200, "height": 700}
        context = browser.new_context(viewport=size, device_scale_factor=scale)  # type: ignore[arg-type] # a TypedDict
        context.set_default_timeout(TIMEOUT_S * 1000)
        context.add_init_script(path=OBSERVER)
        page = context.new_page()
        try:
            page.goto(url, wait_until="domcontentloaded")
            # `add_style_tag` fails where the workbench violates its own policy at the same moment.
            page.evaluate(
                "text => document.head.append(Object.assign(document.createElement('style'), "
                "{ textContent: text }))",
                STILL,
            )
            yield cls(page, folder)
        finally:
            # Leaving the page ends its extension host; closing the browser alone would not.
            page.goto("about:blank")
            context.close()

    def wait_until_up(self) -> None:
        """Wait until the workbench is there; its extensions may not be."""
        self.page.locator(".monaco-workbench .statusbar-item").first.wait_for()

    def text(self) -> str:
        """All that can be read on the screen."""
        return self.page.locator("body").inner_text()

    def is_restricted(self) -> bool:
        """Whether the workbench does not trust the folder."""
        return self.page.locator(".statusbar-item", has_text="Restricted Mode").count() > 0

    def open(self, name: str, text: str | None = None) -> Path:
        """Open a file of the folder, filled with `text` if given; returns its path."""
        path = self.folder / name
        if text is not None:
            path.write_text(text)
        self._pick("Control+P", str(path), path.name)
        self.page.locator(f'.tab.active[data-resource-name="{path.name}"]').wait_for()
        until(lambda: self._state() is not None, what=f"cursor in {name}")
        self.press("Control+End")
        return path

    def open_notebook(self, path: Path, cell: int) -> None:
        """Open a notebook, and set the cursor in the editor of a cell, counted from 0."""
        self._pick("Control+P", str(path), path.name)
        row = self.page.locator(f'.notebookOverlay .code-cell-row[data-index="{cell}"]')
        row.locator(".monaco-editor .view-lines").click()
        until(lambda: self._state() is not None, what=f"cursor in a cell of {path.name}")
        self.press("Control+End")

    def type(self, text: str, *, delay_ms: float = 40) -> None:
        """Press the keys of `text` one after the other."""
        self.page.keyboard.type(text, delay=delay_ms)

    def press(self, *keys: str) -> None:
        """Press keys or chords such as `Control+S`."""
        for key in keys:
            self.page.keyboard.press(key)

    def run(self, title: str) -> None:
        """Run a command by its title in the command palette."""
        self._pick("F1", f">{title}", title)

    def ghost_text(self, *, timeout_s: float = TIMEOUT_S) -> str:
        """The suggestion on the screen, waited for."""
        # The workbench may draw the lines of a suggestion in two frames.
        return until(self._settled_ghost_text, what="ghost text", timeout_s=timeout_s)

    def preview(self) -> str:
        """The line under the cursor, and the lines below it, as they would read with the suggestion."""
        self.ghost_text()
        return self._shown("preview")

    def whole_preview(self) -> str:
        """`preview` once it stays: on a busy machine the engine goes on with what its deadline cut short."""

        def stays() -> str:
            before = self.preview()
            self.page.wait_for_timeout(STAYS_MS)
            return before if self.preview() == before else ""

        return until(stays, what="suggestion that stays")

    def has_ghost_text(self) -> bool:
        """Whether a suggestion is on the screen now."""
        return bool(self._shown("ghost"))

    def line(self) -> str:
        """The text of the document in the line under the cursor."""
        return self._shown("line")

    def lines(self) -> list[str]:
        """The visible lines of the document and the suggestions in them, from the top."""
        found: list[str] = self._editor(".view-lines > .view-line").evaluate_all(
            "lines => lines.sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))"
            ".map(line => line.textContent.replace(/\\u00a0/g, ' '))"
        )
        return found

    def attached(self) -> str:
        """The texts that extensions attach to the lines of the editor, which are not in the document."""
        texts: list[str] = self._editor(".view-line span").evaluate_all(
            "parts => parts.flatMap(part => ['::before', '::after'].map(at => getComputedStyle(part, at)))"
            ".map(style => style.content).filter(text => text[0] === '\"').map(text => text.slice(1, -1))"
        )
        return " ".join(texts).replace("\u00a0", " ")

    def save(self) -> str:
        """Save the file in front, which is not empty; returns what is on the disk then."""
        tab = self.page.locator(".editor-group-container.active .tab.active")
        path = self.folder / str(tab.get_attribute("data-resource-name"))
        before = path.stat().st_mtime_ns
        self.press("Control+S")

        def written() -> str:
            # While the workbench writes, the tab is not marked as changed, and the file is briefly empty.
            is_changed = "dirty" in str(tab.get_attribute("class"))
            return "" if is_changed or path.stat().st_mtime_ns == before else path.read_text()

        return until(written, what="saved file")

    def status(self) -> str:
        """The status bar item as its author writes it, such as `$(zap) 38 ms`; empty if there is none."""
        item = self.page.locator(STATUS_ITEM)
        if not item.count():
            return ""
        icons = item.first.locator(".codicon").evaluate_all("icons => icons.map(icon => icon.className)")
        names = [re.findall(r"codicon-([\w-]+)", icon) for icon in icons]
        label = item.first.inner_text().replace("\u00a0", " ").strip()
        marks = ["$(" + "~".join(n.removeprefix("modifier-") for n in icon) + ")" for icon in names]
        return " ".join([*marks, label]).strip()

    def wait_for_status(self, pattern: str, *, timeout_s: float = TIMEOUT_S) -> str:
        """The first status in which `pattern` is found."""
        return until(
            lambda: status if re.search(pattern, status := self.status()) else "",
            what=f"status like {pattern}",
            timeout_s=timeout_s,
        )

    def wait_until_ready(self, *, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Wait until the server's model is loaded; returns all that the status said on the way."""
        said: list[str] = []

        def look() -> bool:
            status = self.status()
            if status and said[-1:] != [status]:
                said.append(status)
            return status.startswith("$(zap)")

        until(look, what="ready server", timeout_s=timeout_s)
        return said

    def choices(self) -> list[str]:
        """The rows of the list that is open over the editor, which is closed then."""
        rows = self.page.locator(".quick-input-list .monaco-list-row")
        rows.first.wait_for()
        found = [" ".join(row.split()) for row in rows.all_inner_texts()]
        self.press("Escape")
        return found

    def choose(self, label: str) -> None:
        """Take a row of the list that is open over the editor."""
        self.page.locator(".quick-input-list .monaco-list-row", has_text=label).first.click()

    def notifications(self) -> list[str]:
        """The workbench's notifications."""
        return self.page.locator(".notification-list-item-message").all_inner_texts()

    def keys(self) -> list[Key]:
        """All keys that were pressed in this window."""
        return [Key(**key) for key in self._observed("record.keys")]

    def sights(self) -> list[Sight]:
        """All that the line under the cursor showed so far."""
        return [Sight(**sight) for sight in self._observed("record.sights")]

    def picture(self, path: Path) -> None:
        """Write the screen as a PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)

    def _pick(self, chord: str, text: str, label: str) -> None:
        """Open a list by `chord`, narrow it by `text` and take the row with `label`.

        If another page takes the focus meanwhile and closes the list, it is opened again.
        """
        box = self.page.locator(".quick-input-widget input").first
        row = self.page.locator(".quick-input-list .monaco-list-row", has_text=label).first

        def is_taken() -> bool:
            try:
                if not box.is_visible():
                    self.press(chord)
                    box.wait_for(timeout=LIST_MS)
                if box.input_value(timeout=LIST_MS) != text:
                    box.fill(text, timeout=LIST_MS)
                row.click(timeout=LIST_MS)
            except PlaywrightTimeoutError:
                return False
            return True

        until(is_taken, what=f"{label} in a list")
        row.wait_for(state="hidden")

    def _editor(self, selector: str) -> Locator:
        return self.page.locator(f".editor-group-container.active .editor-instance .monaco-editor {selector}")

    def _settled_ghost_text(self) -> str:
        first = self._shown("ghost")
        self.page.wait_for_timeout(100)
        return first if first == self._shown("ghost") else ""

    def _state(self) -> dict[str, str] | None:
        state: dict[str, str] | None = self._observed("seen()")
        return state

    def _shown(self, name: str) -> str:
        return (self._state() or {}).get(name, "")

    def _observed(self, expression: str) -> Any:
        return self.page.evaluate(f"slipstreamObserver.{expression}")
