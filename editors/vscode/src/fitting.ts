// Owns whether an answer still fits a document that changed since it was asked for, and what of an answer was taken.
// Must not know the editor.

/** A line of a document with the cursor in it. */
export interface Spot {
  readonly version: number;
  readonly numLines: number;
  readonly text: string;
  readonly column: number;
}

/** An answer's item: `text` is to replace the columns from `start` to `end` of the spot's line. */
export interface Item {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/**
 * The item as it fits the line now, or undefined when it does not: it still fits when nothing happened but
 * the typing of its own beginning at the cursor.
 */
export function refit(item: Item, asked: Spot, now: Omit<Spot, "column">): Item | undefined {
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

// What editors write by themselves when the first half is typed.
const PAIRS = new Set(["()", "[]", "{}", "<>", '""', "''", "``"]);

/**
 * How many characters of `text` are taken after a change that inserted `inserted` behind the first
 * `numTaken`; undefined when that was no taking of a part: typing, a pair of brackets, a new line with its
 * indentation, or other text.
 */
export function partTaken(text: string, numTaken: number, inserted: string): number | undefined {
  const isTyped = inserted.length === 1 || PAIRS.has(inserted) || inserted.trim() === "";
  const isPart = !isTyped && text.startsWith(inserted, numTaken);
  const total = numTaken + inserted.length;
  return isPart && total < text.length ? total : undefined;
}
