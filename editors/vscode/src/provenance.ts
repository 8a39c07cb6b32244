// Owns where the parts of a suggestion came from: their places in files, and how to go there.
import path from "node:path";
import * as vscode from "vscode";
import type { Piece } from "./protocol";

/** A place in a file that a part was read from; `line` is 0-based. */
export interface Origin {
  readonly file: string;
  readonly line: number;
}

/** The piece's place; undefined when it came from no file. */
export function originOf(piece: Piece): Origin | undefined {
  const { file, line } = piece;
  return typeof file === "string" && path.isAbsolute(file) ? { file, line: Math.max(0, line ?? 0) } : undefined;
}

/** The place as people write it: "lending/members.py:41". */
export function label({ file, line }: Origin): string {
  return `${vscode.workspace.asRelativePath(file)}:${line + 1}`;
}

/** Open the place for a look. */
export async function open({ file, line }: Origin, viewColumn = vscode.ViewColumn.Active): Promise<void> {
  const at = new vscode.Range(line, 0, line, 0);
  try {
    await vscode.window.showTextDocument(vscode.Uri.file(file), { selection: at, preview: true, viewColumn });
  } catch (error) {
    void vscode.window.showWarningMessage(`${file} cannot be opened: ${String(error)}`);
  }
}
