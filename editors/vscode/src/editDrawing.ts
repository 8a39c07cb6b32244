// Owns the decorations of a proposed edit: the old text, the new text, and a hint of its place and key.
import * as vscode from "vscode";
import { changePreview, keyHint, placeHint } from "./editText";
import type { Proposal } from "./nextEdit";

export class EditDrawing implements vscode.Disposable {
  private readonly removed = vscode.window.createTextEditorDecorationType({
    textDecoration: "line-through",
    backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
  });
  private readonly added = vscode.window.createTextEditorDecorationType({});
  private readonly hint: vscode.TextEditorDecorationType;
  private drawnIn: readonly vscode.TextEditor[] = [];

  constructor(media: vscode.Uri) {
    this.hint = vscode.window.createTextEditorDecorationType({
      gutterIconPath: vscode.Uri.joinPath(media, "next-edit.svg"),
      gutterIconSize: "contain",
    });
  }

  dispose(): void {
    vscode.Disposable.from(this.removed, this.added, this.hint).dispose();
  }

  clear(): void {
    for (const editor of this.drawnIn) {
      for (const type of [this.removed, this.added, this.hint]) {
        editor.setDecorations(type, []);
      }
    }
    this.drawnIn = [];
  }

  /** Draw the edit wherever its document is visible, and the hint in the active editor. */
  draw(proposal: Proposal, active: vscode.TextEditor, isAtCursor: boolean): void {
    this.clear();
    const showing = vscode.window.visibleTextEditors.filter(({ document }) => document === proposal.document);
    this.drawnIn = [active, ...showing];
    for (const editor of showing) {
      editor.setDecorations(this.removed, [proposal.range]);
      editor.setDecorations(this.added, [addition(proposal, editor.document)]);
    }
    const isInView = active.document === proposal.document
      && active.visibleRanges.some((range) => range.intersection(proposal.range) !== undefined);
    const line = isInView ? proposal.range.end.line : active.selection.active.line;
    const name = active.document === proposal.document ? undefined : vscode.workspace.asRelativePath(proposal.uri);
    const contentText = isInView
      ? keyHint(isAtCursor, proposal.numPlaces)
      : placeHint(proposal.range.start.line, line, name);
    const color = new vscode.ThemeColor("editorCodeLens.foreground");
    const end = active.document.lineAt(line).range.end;
    active.setDecorations(this.hint, [
      { range: new vscode.Range(end, end), renderOptions: { after: { contentText, color, margin: "0 0 0 2em" } } },
    ]);
  }
}

function addition({ range, text }: Proposal, document: vscode.TextDocument): vscode.DecorationOptions {
  const before = document.lineAt(range.start.line).text.slice(0, range.start.character);
  const after = document.lineAt(range.end.line).text.slice(range.end.character);
  const preview = changePreview(before, text, after);
  const end = preview.isInline ? range.end : document.lineAt(range.end.line).range.end;
  return {
    range: new vscode.Range(end, end),
    hoverMessage: new vscode.MarkdownString().appendCodeblock(preview.lines.join("\n"), document.languageId),
    renderOptions: {
      // The hint stands after the same place where the edit ends its line.
      before: {
        contentText: preview.shown,
        backgroundColor: new vscode.ThemeColor("diffEditor.insertedTextBackground"),
        margin: preview.isInline ? "0" : "0 0 0 2em",
      },
    },
  };
}
