// Runs inside the workbench's page before the workbench does. Owns the record of what a person sees and presses:
// each key, and each change of the line under the cursor with the ghost text in and under it. Times are
// milliseconds since the epoch. Knows the class names of VS Code's editor, nothing of Slipstream.
(() => {
  const GHOST = "ghost-text";
  const GHOST_IN_LINE = "ghost-text-decoration";
  const now = () => performance.timeOrigin + performance.now();
  const plain = (text) => text.replace(/\u00a0/g, " ").replace(/[\u200b\u200c]/g, "");
  const byTop = (a, b) => parseFloat(a.style.top) - parseFloat(b.style.top);

  // The editor that has the cursor, or had it last.
  function editor() {
    return (
      document.querySelector(":is(.editor-instance, .notebookOverlay) .monaco-editor.focused") ??
      document.querySelector(".editor-group-container.active .editor-instance .monaco-editor")
    );
  }

  function lineAtCursor(editor) {
    const top = editor.querySelector(".cursors-layer .cursor")?.style.top;
    return [...editor.querySelectorAll(".view-lines > .view-line")].find((line) => line.style.top === top);
  }

  // line: what the document holds there; preview: what it would hold with the suggestion; ghost: the suggestion's parts.
  function seen() {
    const root = editor();
    const line = root && lineAtCursor(root);
    if (!line) return null;
    const parts = [...line.querySelectorAll("span > span")].filter((part) => !part.querySelector("span"));
    const isGhost = (part) => part.classList.contains(GHOST_IN_LINE) || part.classList.contains(GHOST);
    const text = (some) => plain(some.map((part) => part.textContent).join(""));
    const below = [...root.querySelectorAll(".view-zones .suggest-preview-text .view-line")]
      .sort(byTop)
      .map((zoneLine) => plain(zoneLine.textContent));
    const inLine = text(parts.filter(isGhost));
    return {
      line: text(parts.filter((part) => !isGhost(part))),
      preview: [text(parts), ...below].join("\n"),
      ghost: inLine || below.length ? [inLine, ...below].join("\n") : "",
    };
  }

  // Where the cursor is, and how far the view is scrolled.
  function place() {
    const root = editor();
    const styles = [".cursors-layer .cursor", ".lines-content"].map((selector) => root.querySelector(selector).style);
    return styles.map(({ left, top }) => `${left} ${top}`).join(", ");
  }

  const record = { keys: [], sights: [] };
  let last = "";
  function look() {
    const sight = seen();
    const key = JSON.stringify(sight);
    if (!sight || key === last) return;
    last = key;
    record.sights.push({ at_ms: now(), ...sight });
  }

  window.slipstreamObserver = { record, seen, place };
  window.addEventListener(
    "keydown",
    (event) => record.keys.push({ at_ms: performance.timeOrigin + event.timeStamp, key: event.key }),
    true,
  );
  // Its callback runs after the workbench has drawn a frame and before the browser paints it.
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
})();
