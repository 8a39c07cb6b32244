// Owns the sources of a suggestion's parts in files: their labels, and opening them.
import path from "node:path";
import * as vscode from "vscode";
import type { Piece } from "./protocol";

/** The line of a file that a part was read from; `line` is 0-based. */
export interface Origin {
  readonly file: string;
  readonly line: number;
}

/** The file and line of a part, or undefined if it was not read from a file. */
export function originOf(piece: Piece): Origin | undefined {
  const { file, line } = piece;
  return typeof file === "string" && path.isAbsolute(file) ? { file, line: Math.max(0, line ?? 0) } : undefined;
}

/** Its label: "lending/members.py:41". */
export function label({ file, line }: Origin): string {
  return `${vscode.workspace.asRelativePath(file)}:${line + 1}`;
}

/** Open the file at the line. */
export async function open({ file, line }: Origin, viewColumn = vscode.ViewColumn.Active): Promise<void> {
  const at = new vscode.Range(line, 0, line, 0);
  try {
    await vscode.window.showTextDocument(vscode.Uri.file(file), { selection: at, preview: true, viewColumn });
  } catch (error) {
    void vscode.window.showWarningMessage(`Slipstream could not open ${file}: ${String(error)}`);
  }
}
