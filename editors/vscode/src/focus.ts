// Owns the notification of the cursor position, with which the server prepares before a key is pressed.
import * as vscode from "vscode";
import { SELECTOR, type Server } from "./client";

// The server is notified of a cursor that rests this long.
const REST_MS = 100;

export class Focus implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private version: number | undefined;

  constructor(private readonly server: Server) {
    this.subscriptions = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor(() => { this.send(); }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => { this.follow(textEditor.document); }),
      server.onDidChange(({ phase }) => {
        if (phase === "ready") {
          this.send();
        }
      }),
    );
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.dispose();
  }

  /** A cursor moved. If a key moved it, the request for a suggestion is on its way. */
  private follow(document: vscode.TextDocument): void {
    clearTimeout(this.timer);
    const isTyped = document.version !== this.version;
    this.version = document.version;
    if (!isTyped) {
      this.timer = setTimeout(() => { this.send(); }, REST_MS);
    }
  }

  private send(): void {
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
