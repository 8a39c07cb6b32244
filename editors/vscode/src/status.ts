// Owns what a window shows of the server's state: the status bar's item, and the message about a failure.
import * as vscode from "vscode";
import type { Server } from "./client";
import type { Failure } from "./serverLifecycle";
import type { Remedy } from "./setupError";
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

  /** The current situation, for the status bar and the menu. */
  get situation(): Situation {
    const { phase, message, percent } = this.server.current;
    return {
      phase: this.switches.isEnabled ? phase : "off",
      message,
      percent,
      snoozedUntil: this.switches.snoozedUntil,
      silentLanguage: this.switches.silentLanguage,
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

/** Escapes Markdown, because a folder's name may contain any character. */
function escapeCell(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>~&]/g, "\\$&");
}

const BUTTONS: Readonly<Record<Remedy, { readonly title: string; readonly command: string; readonly args: string[] }>> = {
  retry: { title: "Restart", command: "slipstream.restart", args: [] },
  settings: { title: "Settings", command: "workbench.action.openSettings", args: ["@ext:slipstream.slipstream server"] },
  "settings.json": { title: "Open settings.json", command: "workbench.action.openSettingsJson", args: [] },
  log: { title: "Show Log", command: "slipstream.openLog", args: [] },
};

/** Show a failure with its buttons. */
export async function showFailure({ message, remedies }: Failure): Promise<void> {
  const buttons = remedies.map((remedy) => BUTTONS[remedy]);
  const picked = await vscode.window.showErrorMessage(`Slipstream: ${message}`, ...buttons.map(({ title }) => title));
  const button = buttons.find(({ title }) => title === picked);
  if (button !== undefined) {
    await vscode.commands.executeCommand(button.command, ...button.args);
  }
}
