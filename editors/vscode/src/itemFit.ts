// Owns whether an answer fits a document that changed since the request, and which part of it was accepted.
// Does not import the editor.

/** The line of the cursor. */
export interface CursorLine {
  readonly version: number;
  readonly numLines: number;
  readonly text: string;
  readonly column: number;
}

/** An item of an answer: `text` replaces the columns from `start` to `end` of the line. */
export interface Item {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** The item for the current line, or undefined if the user did anything but type its beginning at the cursor. */
export function refit(item: Item, asked: CursorLine, now: Omit<CursorLine, "column">): Item | undefined {
  if (now.version === asked.version) {
    return item;
  }
  const before = asked.text.slice(0, asked.column);
  const after = asked.text.slice(asked.column);
  const numTyped = now.text.length - asked.text.length;
  const isTyping =
    now.numLines === asked.numLines && numTyped >= 0 && now.text.startsWith(before) && now.text.endsWith(after);
  if (!isTyping) {
    return undefined;
  }
  const ahead = asked.text.slice(item.start, asked.column);
  const typed = now.text.slice(asked.column, asked.column + numTyped);
  return item.text.startsWith(ahead + typed) ? { ...item, end: item.end + numTyped } : undefined;
}

// Pairs that editors close when the first half is typed.
const PAIRS = new Set(["()", "[]", "{}", "<>", '""', "''", "``"]);

/**
 * Number of characters of `text` that are accepted after a change that inserted `inserted` after the first `numTaken`.
 * Undefined if the change did not accept a part: typing, a pair of brackets, a new line with indentation, other text.
 */
export function partTaken(text: string, numTaken: number, inserted: string): number | undefined {
  const isTyped = inserted.length === 1 || PAIRS.has(inserted) || inserted.trim() === "";
  const isPart = !isTyped && text.startsWith(inserted, numTaken);
  const total = numTaken + inserted.length;
  return isPart && total < text.length ? total : undefined;
}
