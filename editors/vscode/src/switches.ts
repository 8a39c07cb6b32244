// Owns whether suggestions are on: the global switch, the snooze, the active language.
import * as vscode from "vscode";
import * as configuration from "./configuration";
import { isEnabledFor, toggled } from "./settings";

const SNOOZED_UNTIL = "slipstream.snoozedUntil";

export class Switches implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  readonly onDidChange = this.changes.event;

  constructor(private readonly memory: vscode.Memento) {
    this.subscriptions = [
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (configuration.affects(event, "editor.enabled") || configuration.affects(event, "languages")) {
          this.changed();
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.changed();
      }),
    ];
    this.wakeLater();
    this.changed();
  }

  get isEnabled(): boolean {
    return configuration.get("editor.enabled", true);
  }

  get isSnoozed(): boolean {
    return this.until > Date.now();
  }

  /** The end of the snooze as text, or undefined. */
  get snoozedUntil(): string | undefined {
    const format = { hour: "2-digit", minute: "2-digit" } as const;
    return this.isSnoozed ? new Date(this.until).toLocaleTimeString(undefined, format) : undefined;
  }

  /** The active document's language if suggestions are off for it. */
  get silentLanguage(): string | undefined {
    const language = vscode.window.activeTextEditor?.document.languageId;
    return language !== undefined && !isEnabledFor(configuration.languages(), language) ? language : undefined;
  }

  async setEnabled(isEnabled: boolean): Promise<void> {
    await configuration.set("editor.enabled", isEnabled);
  }

  async toggleLanguage(language: string): Promise<void> {
    await configuration.set("languages", toggled(configuration.languages(), language));
  }

  /** Snooze suggestions for a number of minutes; 0 resumes them. */
  async snooze(minutes: number): Promise<void> {
    await this.memory.update(SNOOZED_UNTIL, minutes > 0 ? Date.now() + minutes * 60_000 : undefined);
    this.wakeLater();
    this.changed();
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions, this.changes).dispose();
  }

  private get until(): number {
    return this.memory.get(SNOOZED_UNTIL, 0);
  }

  private wakeLater(): void {
    clearTimeout(this.timer);
    const wait = this.until - Date.now();
    if (wait > 0) {
      this.timer = setTimeout(() => {
        this.changed();
      }, wait + 1);
    }
  }

  private changed(): void {
    setContext("enabled", this.isEnabled);
    setContext("snoozed", this.isSnoozed);
    this.changes.fire();
  }
}

/** Set a context key below `slipstream`, for `when` clauses and the walkthrough. */
export function setContext(key: string, value: boolean): void {
  void vscode.commands.executeCommand("setContext", `slipstream.${key}`, value);
}
