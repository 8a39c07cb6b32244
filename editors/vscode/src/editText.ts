// Owns how a proposed edit reads as text: in its line, in a hint, in a hover.

// Decorations have one line, and a long one hides the code beside it.
const MAX_SHOWN = 120;

export interface ChangePreview {
  /** Whether the new text stands where the old one is; otherwise it stands at the end of the line. */
  readonly isInline: boolean;
  readonly shown: string;
  /** The lines of the edit as they will be. */
  readonly lines: readonly string[];
}

/** The new text between what stays of its first and last line. */
export function changePreview(before: string, text: string, after: string): ChangePreview {
  const lines = (before + text + after).split(/\r?\n/);
  const isInline = lines.length === 1;
  const whole = isInline ? text : lines.map((line) => line.trim()).join(" ⏎ ");
  const shown = whole.length > MAX_SHOWN ? `${whole.slice(0, MAX_SHOWN - 1)}…` : whole;
  // Decorations collapse blanks.
  return { isInline, shown: shown.replace(/ /g, "\u00a0").replace(/\t/g, "\u00a0\u00a0"), lines };
}

/** A hint of the keys for an edit in view; `numPlaces` of its kind are in its file. */
export function keyHint(isAtCursor: boolean, numPlaces: number): string {
  const all = numPlaces > 1 ? ", Alt+Shift+\\ for all places" : "";
  return `Tab to ${isAtCursor ? "apply" : "jump"}${all}`;
}

/** A hint of an edit that the editor does not show; lines count from 0. */
export function placeHint(line: number, cursorLine: number, file: string | undefined): string {
  if (file !== undefined) {
    return `→ next edit in ${file}:${line + 1}, Tab to jump`;
  }
  return `${line < cursorLine ? "↑" : "↓"} next edit in line ${line + 1}, Tab to jump`;
}
