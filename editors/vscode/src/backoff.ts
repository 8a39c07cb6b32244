// Owns how long to wait before a server that ended by itself starts again, and when to give up.

const MAX_CRASHES = 5;
const WINDOW_MS = 3 * 60_000;
export const LONGEST_WAIT_MS = 30_000;
const FIRST_WAIT_MS = 1_000;
// A server that ran this long had nothing to do with the crash before it.
const STABLE_MS = 10 * 60_000;

/** Remembers crashes by their time; all times in milliseconds. */
export class Crashes {
  private times: number[] = [];

  /** Note a crash at `now`. Returns how long to wait before the next start, or undefined to give up. */
  add(now: number): number | undefined {
    const last = this.times.at(-1);
    if (last !== undefined && now - last > STABLE_MS) {
      this.times = [];
    }
    this.times.push(now);
    if (this.times.filter((time) => now - time < WINDOW_MS).length >= MAX_CRASHES) {
      return undefined;
    }
    return Math.min(FIRST_WAIT_MS * 2 ** (this.times.length - 1), LONGEST_WAIT_MS);
  }

  /** Begin anew, as when the user restarts the server. */
  clear(): void {
    this.times = [];
  }
}
