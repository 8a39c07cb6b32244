// Owns applying the next edit in all its places: the choice of the user, and the list to look at first.
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

type Choice = vscode.QuickPickItem & { readonly edits: readonly ProposedEdit[]; readonly isListed: boolean };

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
  const chosen = picked?.isListed === true ? await chosenOf(edits) : picked?.edits;
  if (chosen !== undefined && chosen.length > 0) {
    await apply(server, chosen, edits[0]?.command);
  }
}

/** The places that the user leaves ticked in a list of all; undefined if the list is dismissed. */
async function chosenOf(edits: readonly ProposedEdit[]): Promise<readonly ProposedEdit[] | undefined> {
  const rows = await Promise.all(edits.map(async (edit) => {
    const { range: { start, end }, text, textDocument } = edit;
    const uri = vscode.Uri.parse(textDocument.uri, true);
    const lines = await linesOf(uri);
    const line = (lines[start.line] ?? "").slice(0, start.character) + text + (lines[end.line] ?? "").slice(end.character);
    return { label: line.trim(), description: `${vscode.workspace.asRelativePath(uri)}:${start.line + 1}`, picked: true, edit };
  }));
  const options = { title: "Apply the Next Edit", placeHolder: "Enter applies the edits that are ticked", canPickMany: true } as const;
  return (await vscode.window.showQuickPick(rows, options))?.map(({ edit }) => edit);
}

async function linesOf(uri: vscode.Uri): Promise<string[]> {
  const document = openDocument(uri);
  const text = document?.getText() ?? new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  return text.split(/\r?\n/);
}

function openDocument(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri.toString());
}

function choices(edits: readonly ProposedEdit[], here: string): Choice[] {
  const own = edits.filter(({ textDocument }) => textDocument.uri === here);
  const numFiles = new Set(edits.map(({ textDocument }) => textDocument.uri)).size;
  const places = (some: readonly ProposedEdit[]): string => numbered(some.length, "place");
  const look: Choice = {
    label: "$(list-tree) Look at All Places",
    description: `${places(edits)} in ${numbered(numFiles, "file")}`,
    edits,
    isListed: true,
  };
  const inFile: Choice = { label: "$(file) Apply in This File", description: places(own), edits: own, isListed: false };
  return own.length > 0 ? [inFile, look] : [look];
}

async function apply(server: Server, edits: readonly ProposedEdit[], accepted: ProposedEdit["command"]): Promise<void> {
  const change = new vscode.WorkspaceEdit();
  for (const { range: { start, end }, text, textDocument } of edits) {
    const uri = vscode.Uri.parse(textDocument.uri, true);
    if (openDocument(uri)?.version !== (textDocument.version ?? undefined)) {
      void vscode.window.showWarningMessage("A file has changed since. Ask for the places again.");
      return;
    }
    change.replace(uri, new vscode.Range(start.line, start.character, end.line, end.character), text);
  }
  const isApplied = await vscode.workspace.applyEdit(change, { isRefactoring: true });
  if (isApplied && accepted !== undefined) {
    await server.request("workspace/executeCommand", { command: accepted.command, arguments: accepted.arguments });
  }
}
