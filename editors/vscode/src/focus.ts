// Owns what the server is told of where the user looks: it prepares for that place before a key is pressed.
import * as vscode from "vscode";
import { SELECTOR, type Server } from "./client";

// A cursor that rests this long has arrived.
const SETTLED_MS = 100;

export class Focus implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private version: number | undefined;

  constructor(private readonly server: Server) {
    this.subscriptions = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor(() => { this.tell(); }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => { this.follow(textEditor.document); }),
      server.onDidChange(({ phase }) => {
        if (phase === "ready") {
          this.tell();
        }
      }),
    );
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.dispose();
  }

  /** A cursor moved; where that was by typing, the suggestion is on its way already. */
  private follow(document: vscode.TextDocument): void {
    clearTimeout(this.timer);
    const isTyped = document.version !== this.version;
    this.version = document.version;
    if (!isTyped) {
      this.timer = setTimeout(() => { this.tell(); }, SETTLED_MS);
    }
  }

  private tell(): void {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || SELECTOR.every(({ scheme }) => scheme !== editor.document.uri.scheme)) {
      return;
    }
    this.version = editor.document.version;
    const { line, character } = editor.selection.active;
    const textDocument = { uri: editor.document.uri.toString() };
    this.server.notify("textDocument/didFocus", { textDocument, position: { line, character } });
  }
}
