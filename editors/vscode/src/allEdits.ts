// Owns applying the next edit in all its places: the choice of the user, and the workbench's own preview.
import * as vscode from "vscode";
import type { Server } from "./client";
import { numbered } from "./figures";
import { type EditAnswer, EDIT_METHOD, type ProposedEdit } from "./protocol";

// The status bar shows for this time that there is no next edit.
const NOTICE_MS = 5_000;

/** Show that there is no next edit, and why. */
export function showNoEdit(reason: string | undefined): void {
  vscode.window.setStatusBarMessage(`Slipstream has no next edit. ${reason ?? ""}`.trim(), NOTICE_MS);
}

type Choice = vscode.QuickPickItem & { readonly edits: readonly ProposedEdit[]; readonly isPreviewed: boolean };

/** Ask for all places of the next edit, and let the user choose between this file and a list of them. */
export async function applyInAllPlaces(server: Server, editor: vscode.TextEditor): Promise<void> {
  const { document, selection } = editor;
  const { line, character } = selection.active;
  const params = {
    textDocument: { uri: document.uri.toString(), version: document.version },
    position: { line, character },
    context: { triggerKind: 1, otherDocuments: true, otherFiles: true, allEdits: true },
  };
  const answer = await server.request<EditAnswer>(EDIT_METHOD, params);
  const edits = answer?.edits ?? [];
  if (edits.length === 0) {
    showNoEdit(answer?.reason);
    return;
  }
  const picked = await vscode.window.showQuickPick(choices(edits, document.uri.toString()), {
    title: "Apply the Next Edit",
    placeHolder: "Choose where to apply it",
  });
  if (picked !== undefined) {
    await apply(server, picked, edits[0]?.command);
  }
}

function choices(edits: readonly ProposedEdit[], here: string): Choice[] {
  const own = edits.filter(({ textDocument }) => textDocument.uri === here);
  const numFiles = new Set(edits.map(({ textDocument }) => textDocument.uri)).size;
  const places = (some: readonly ProposedEdit[]): string => numbered(some.length, "place");
  const look: Choice = {
    label: "$(list-tree) Look at All Places",
    description: `${places(edits)} in ${numbered(numFiles, "file")}`,
    edits,
    isPreviewed: true,
  };
  const inFile: Choice = { label: "$(file) Apply in This File", description: places(own), edits: own, isPreviewed: false };
  return own.length > 0 ? [inFile, look] : [look];
}

async function apply(server: Server, { edits, isPreviewed }: Choice, accepted: ProposedEdit["command"]): Promise<void> {
  const change = new vscode.WorkspaceEdit();
  const metadata = isPreviewed ? { needsConfirmation: true, label: "Slipstream: next edit" } : undefined;
  for (const { range: { start, end }, text, textDocument } of edits) {
    const uri = vscode.Uri.parse(textDocument.uri, true);
    const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri.toString());
    if (document?.version !== (textDocument.version ?? undefined)) {
      void vscode.window.showWarningMessage("A file has changed since. Ask for the places again.");
      return;
    }
    change.replace(uri, new vscode.Range(start.line, start.character, end.line, end.character), text, metadata);
  }
  const isApplied = await vscode.workspace.applyEdit(change, { isRefactoring: isPreviewed });
  if (isApplied && accepted !== undefined) {
    await server.request("workspace/executeCommand", { command: accepted.command, arguments: accepted.arguments });
  }
}
