// Owns the status bar's item.
import * as vscode from "vscode";
import type { Server } from "./client";
import type { StatsFeed } from "./statsFeed";
import { describe, figures, type Situation, type Shown } from "./statusText";
import type { Switches } from "./switches";

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("slipstream.status", vscode.StatusBarAlignment.Right, 90);
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly switches: Switches,
    private readonly feed: StatsFeed,
  ) {
    this.item.name = "Slipstream";
    this.item.command = "slipstream.menu";
    const draw = (): void => {
      this.draw();
    };
    this.subscriptions = [server.onDidChange(draw), switches.onDidChange(draw), feed.onDidChange(draw)];
    this.draw();
    this.item.show();
  }

  /** What holds now, as the menu shows it too. */
  get situation(): Situation {
    const { phase, message, percent } = this.server.current;
    return {
      phase: this.switches.isEnabled ? phase : "off",
      message,
      percent,
      snoozedUntil: this.switches.snoozedUntil,
      silentLanguage: this.switches.silentLanguage,
      stats: this.feed.latest,
    };
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions, this.item).dispose();
  }

  private draw(): void {
    const shown = describe(this.situation);
    this.item.text = shown.text;
    this.item.backgroundColor = shown.isError ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
    this.item.tooltip = this.tooltip(shown);
    this.item.accessibilityInformation = { label: `Slipstream. ${shown.sentence}`, role: "button" };
  }

  private tooltip(shown: Shown): vscode.MarkdownString {
    const text = new vscode.MarkdownString("**Slipstream**\n\n");
    text.appendText(shown.sentence);
    const rows = this.feed.latest === undefined ? [] : figures(this.feed.latest);
    if (rows.length > 0) {
      text.appendMarkdown("\n\n| | |\n|:--|--:|\n");
      for (const [name, figure] of rows) {
        text.appendMarkdown(`| ${escapeCell(name)} | ${escapeCell(figure)} |\n`);
      }
    }
    return text;
  }
}

/** A folder's name may hold anything. */
function escapeCell(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>~&]/g, "\\$&");
}
