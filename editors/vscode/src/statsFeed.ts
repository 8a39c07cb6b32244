// Owns the requests for statistics: shortly after an event, and regularly while the page is visible.
import * as vscode from "vscode";
import type { Server } from "./client";
import type { Stats } from "./protocol";

const DEBOUNCE_MS = 150;
const POLL_MS = 1_500;

export class StatsFeed implements vscode.Disposable {
  private readonly news = new vscode.EventEmitter<Stats>();
  private timer: NodeJS.Timeout | undefined;
  private poll: NodeJS.Timeout | undefined;
  private stats: Stats | undefined;

  readonly onDidChange = this.news.event;

  constructor(private readonly server: Server) {}

  /** The last statistics, or undefined before the first answer of a server. */
  get latest(): Stats | undefined {
    return this.stats;
  }

  /** Request them soon; many calls in a row send one request. */
  refresh(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), DEBOUNCE_MS);
  }

  /** Discard the statistics of the previous server. */
  forget(): void {
    this.stats = undefined;
  }

  /** Request them repeatedly while `isWatched`. */
  watch(isWatched: boolean): void {
    clearInterval(this.poll);
    this.poll = isWatched ? setInterval(() => void this.ask(), POLL_MS) : undefined;
    if (isWatched) {
      this.refresh();
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    clearInterval(this.poll);
    this.news.dispose();
  }

  private async ask(): Promise<void> {
    const stats = await this.server.request<Stats>("slipstream/stats", {});
    if (stats !== undefined) {
      this.stats = stats;
      this.news.fire(stats);
    }
  }
}
