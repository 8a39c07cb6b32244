// Owns the requests for suggestions: whether to send one, whether its answer still fits, and which part was accepted.
import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import * as configuration from "./configuration";
import type { Growth } from "./growth";
import { partTaken, refit, type CursorLine } from "./itemFit";
import { ACCEPTED_COMMAND, MODEL_PROGRESS } from "./protocol";
import { isEnabledFor } from "./settings";
import type { Switches } from "./switches";

// The status bar shows for this time that an explicit request had no answer.
const NOTICE_MS = 3_000;

/** An item of the server's answer. */
interface ProtocolItem {
  readonly insertText: string;
  readonly range: { readonly start: LspPosition; readonly end: LspPosition };
  readonly command: vscode.Command | undefined;
}

interface LspPosition {
  readonly line: number;
  readonly character: number;
}

/** The visible suggestion, and the parts of it that were accepted. */
interface OnScreen {
  readonly document: vscode.TextDocument;
  readonly item: ProtocolItem;
  readonly offset: number;
  numTaken: number;
  numTyped: number;
}

export type Notify = (method: string, params: unknown) => void;

export class Suggestions implements vscode.Disposable {
  private readonly events = new vscode.EventEmitter<"answered" | "accepted">();
  private readonly subscription: vscode.Disposable;
  private readonly ownProgress = new Set<string | number>();
  private onScreen: OnScreen | undefined;

  readonly onDidHappen = this.events.event;

  constructor(
    private readonly switches: Switches,
    private readonly growth: Growth,
    private readonly notify: Notify,
  ) {
    this.subscription = vscode.workspace.onDidChangeTextDocument((event) => {
      this.follow(event);
    });
  }

  /** The hooks in the language client. */
  middleware(): Middleware {
    return {
      provideInlineCompletionItems: async (document, position, asGiven, token, next) => {
        const context = this.growth.requested(document, position, asGiven);
        if (!this.isWanted(document, context.triggerKind)) {
          return undefined;
        }
        const asked = cursorLineOf(document, position);
        const answer = await unlessCancelled(async () => next(document, position, context, token));
        if (answer === undefined || token.isCancellationRequested) {
          return undefined;
        }
        const items = this.answered(document, position, asked, itemsOf(answer));
        this.growth.answered(document, position, context, items.length);
        if (items.length === 0 && context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke) {
          vscode.window.setStatusBarMessage("Slipstream has no suggestion here", NOTICE_MS);
        }
        return items;
      },
      executeCommand: async (command, args, next) => {
        const result: unknown = await next(command, args);
        if (command === ACCEPTED_COMMAND) {
          this.onScreen = undefined;
          this.events.fire("accepted");
        }
        return result;
      },
      handleWorkDoneProgress: (token, params, next) => {
        // The status bar's item shows the progress of loading the model, so the editor's progress bar is not needed.
        if (params.kind === "begin") {
          // A restarted server reuses the tokens.
          this.ownProgress.delete(token);
          if (params.title === MODEL_PROGRESS) {
            this.ownProgress.add(token);
          }
        }
        if (!this.ownProgress.has(token)) {
          next(token, params);
        }
      },
      workspace: {
        configuration: (params) =>
          params.items.map(({ section }) => (section === "slipstream" ? configuration.forServer() : null)),
        didChangeConfiguration: (_sections, next) => next(undefined),
      },
    };
  }

  dispose(): void {
    this.subscription.dispose();
    this.events.dispose();
  }

  private isWanted(document: vscode.TextDocument, kind: vscode.InlineCompletionTriggerKind): boolean {
    const isAutomatic = kind === vscode.InlineCompletionTriggerKind.Automatic;
    if (!this.switches.isEnabled || !isEnabledFor(configuration.languages(), document.languageId)) {
      return false;
    }
    return !isAutomatic || (!this.switches.isSnoozed && configuration.get<string>("trigger", "automatic") !== "manual");
  }

  /** The items that still fit. Notifies the server that the first of them is shown. */
  private answered(
    document: vscode.TextDocument,
    position: vscode.Position,
    asked: CursorLine,
    items: readonly vscode.InlineCompletionItem[],
  ): vscode.InlineCompletionItem[] {
    this.events.fire("answered");
    const now = cursorLineOf(document, position);
    const fitting = items.filter((item) => {
      const { start, end } = rangeOf(item, position);
      const fit = refit({ text: textOf(item), start: start.character, end: end.character }, asked, now);
      if (fit !== undefined) {
        item.range = new vscode.Range(start, end.with({ character: fit.end }));
      }
      return fit !== undefined;
    });
    if (fitting[0] !== undefined) {
      this.shown(document, fitting[0], position);
    }
    return fitting;
  }

  /** The editor does not report what it shows, so an answer that fits counts as shown. */
  private shown(document: vscode.TextDocument, item: vscode.InlineCompletionItem, position: vscode.Position): void {
    const range = rangeOf(item, position);
    const shown: ProtocolItem = {
      insertText: textOf(item),
      range: { start: lspPositionOf(range.start), end: lspPositionOf(range.end) },
      command: item.command,
    };
    const numTyped = position.character - range.start.character;
    this.onScreen = { document, item: shown, offset: document.offsetAt(range.start), numTaken: numTyped, numTyped };
    this.notify("textDocument/didShowCompletion", { item: shown });
  }

  /** Tell accepted words and lines from typed text. */
  private follow({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const shown = this.onScreen;
    const change = contentChanges[0];
    if (document !== shown?.document || change === undefined) {
      return;
    }
    const isAtEnd = contentChanges.length === 1 && change.rangeOffset === shown.offset + shown.numTaken;
    if (!isAtEnd || change.rangeLength !== 0) {
      this.onScreen = undefined;
      return;
    }
    const text = shown.item.insertText;
    const numTaken = partTaken(text, shown.numTaken, change.text);
    if (numTaken !== undefined) {
      shown.numTaken = numTaken;
      this.notify("textDocument/didPartiallyAcceptCompletion", {
        item: shown.item,
        acceptedLength: numTaken - shown.numTyped,
      });
      this.events.fire("accepted");
    } else if (text.startsWith(change.text, shown.numTaken)) {
      shown.numTaken += change.text.length;
      shown.numTyped += change.text.length;
    } else {
      this.onScreen = undefined;
    }
  }
}

type Answer = vscode.InlineCompletionItem[] | vscode.InlineCompletionList | null | undefined;

/** The answer, or undefined if a newer request replaced it. */
async function unlessCancelled(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof vscode.CancellationError) {
      return undefined;
    }
    throw error;
  }
}

function itemsOf(answer: Answer): readonly vscode.InlineCompletionItem[] {
  return Array.isArray(answer) ? answer : (answer?.items ?? []);
}

function cursorLineOf(document: vscode.TextDocument, { line, character }: vscode.Position): CursorLine {
  const text = line < document.lineCount ? document.lineAt(line).text : "";
  return { version: document.version, numLines: document.lineCount, text, column: character };
}

function rangeOf(item: vscode.InlineCompletionItem, position: vscode.Position): vscode.Range {
  return item.range ?? new vscode.Range(position, position);
}

function textOf(item: vscode.InlineCompletionItem): string {
  return typeof item.insertText === "string" ? item.insertText : item.insertText.value;
}

function lspPositionOf({ line, character }: vscode.Position): LspPosition {
  return { line, character };
}
