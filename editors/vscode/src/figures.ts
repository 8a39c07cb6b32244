// Owns the format of figures in the status bar, the menus and the statistics page, and the line that draws them.

/** Milliseconds without false precision: "0.8 ms", "38 ms", "1.4 s". */
export function milliseconds(ms: number): string {
  if (ms >= 999.5) {
    return `${(ms / 1000).toFixed(1)} s`;
  }
  return `${ms >= 9.95 || ms === 0 ? Math.round(ms) : ms.toFixed(1)} ms`;
}

/** Tokens that one pass of the model wrote, without reused ones; undefined without a pass. */
export function tokensPerPass(tokens: { readonly num_written?: number; readonly num_forwards?: number }): string | undefined {
  const { num_forwards: passes = 0, num_written: written = 0 } = tokens;
  return passes > 0 ? (written / passes).toFixed(1) : undefined;
}

/** A number of things: "1 pass", "2 passes". */
export function numbered(number: number, one: string, several = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : several}`;
}

/** A text in lines of at most `width` characters, broken between words; a longer word has a line of its own. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trim();
    if (lines.length > 0 && longer.length <= width) {
      lines[lines.length - 1] = longer;
    } else {
      lines.push(word);
    }
  }
  return lines;
}

/** A share in whole percent, or "–" if the whole is 0. */
export function share(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–";
}

/** A count with separated thousands: "48 800". */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** The points of `values` in a box of that size, oldest at the left, the largest at the top, zero at the bottom. */
export function points(values: readonly number[], width: number, height: number): [number, number][] {
  const top = Math.max(...values, 1);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  return values.map((value, index) => [round(index * step), round(height - (Math.max(value, 0) / top) * height)]);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
