// Owns the next edit: the request when typing pauses, the one proposal, and what Tab and Escape do with it.
import * as vscode from "vscode";
import { applyInAllPlaces, showNoEdit } from "./allEdits";
import type { Server } from "./client";
import * as configuration from "./configuration";
import { EditDrawing } from "./editDrawing";
import { type EditAnswer, EDIT_METHOD, type ProposedEdit, REJECTED_EDIT_COMMAND } from "./protocol";
import { isEnabledFor } from "./settings";
import { setContext, type Switches } from "./switches";

const PAUSE_MS = 100;

type TriggerKind = "automatic" | "invoked";

/** An edit of a document as it is now. A file that is not open has no document yet, and `text` is not drawn. */
export interface Proposal {
  readonly uri: vscode.Uri;
  readonly document: vscode.TextDocument | undefined;
  readonly version: number | undefined;
  readonly range: vscode.Range;
  readonly text: string;
  readonly command: vscode.Command | undefined;
  /** The places of its kind in its file. */
  readonly numPlaces: number;
}

export class NextEdit implements vscode.Disposable {
  private readonly drawing: EditDrawing;
  private readonly subscriptions: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private asked: vscode.CancellationTokenSource | undefined;
  private proposal: Proposal | undefined;
  private isVisible = false;

  constructor(
    private readonly server: Server,
    private readonly switches: Switches,
    media: vscode.Uri,
  ) {
    this.drawing = new EditDrawing(media);
    const redraw = (): void => { this.redraw(); };
    this.subscriptions = vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument((event) => { this.follow(event); }),
      vscode.workspace.onDidOpenTextDocument((document) => { this.discard(document); }),
      vscode.workspace.onDidCloseTextDocument((document) => { this.discard(document); }),
      vscode.window.onDidChangeActiveTextEditor(redraw),
      vscode.window.onDidChangeTextEditorSelection(redraw),
      vscode.window.onDidChangeTextEditorVisibleRanges(redraw),
      switches.onDidChange(() => {
        // No editor is active while another tab opens, and a jump goes on.
        const document = vscode.window.activeTextEditor?.document;
        if (!this.isOn || (document !== undefined && !this.isWanted(document))) {
          this.clear();
        }
      }),
      server.onDidChange(({ phase }) => {
        if (phase !== "ready") {
          this.clear();
        }
      }),
    );
  }

  dispose(): void {
    this.clear();
    this.subscriptions.dispose();
    this.drawing.dispose();
  }

  /** Jump to the proposal, apply it where the cursor is there, or ask for one. */
  async step(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const proposal = this.valid();
    if (proposal === undefined) {
      await this.ask("invoked");
    } else if (proposal.document === undefined) {
      // The server answers for the document that it is about to read.
      this.clear();
      await jump(proposal);
      this.askSoon("invoked");
    } else if (editor === undefined || !isAt(proposal, editor)) {
      await jump(proposal);
      this.redraw();
    } else {
      await this.apply(proposal, editor);
    }
  }

  /** Offer to apply the next edit in this file or in all places, with a list to look at first. */
  async stepEverywhere(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor !== undefined && this.isWanted(editor.document)) {
      await applyInAllPlaces(this.server, editor);
    }
  }

  /** Dismiss the proposal for good. */
  async dismiss(): Promise<void> {
    const id: unknown = this.valid()?.command?.arguments?.[0];
    this.clear();
    await this.server.request("workspace/executeCommand", { command: REJECTED_EDIT_COMMAND, arguments: [id] });
  }

  private follow({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    if (contentChanges.length === 0) {
      return;
    }
    this.discard(document);
    if (document === vscode.window.activeTextEditor?.document) {
      this.askSoon("automatic");
    }
  }

  /** Drop a proposal for a document that is another one now. */
  private discard({ uri }: vscode.TextDocument): void {
    if (uri.toString() === this.proposal?.uri.toString()) {
      this.clear();
    }
  }

  private askSoon(kind: TriggerKind): void {
    this.cancel();
    this.timer = setTimeout(() => void this.ask(kind), PAUSE_MS);
  }

  private get isOn(): boolean {
    return this.switches.isEnabled && !this.switches.isSnoozed && configuration.get<string>("nextEdit", "automatic") !== "off";
  }

  private isWanted(document: vscode.TextDocument): boolean {
    return this.isOn && isEnabledFor(configuration.languages(), document.languageId);
  }

  private async ask(kind: TriggerKind): Promise<void> {
    this.cancel();
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || !this.isWanted(editor.document)) {
      return;
    }
    const asked = new vscode.CancellationTokenSource();
    this.asked = asked;
    const { line, character } = editor.selection.active;
    const params = {
      textDocument: { uri: editor.document.uri.toString(), version: editor.document.version },
      position: { line, character },
      context: { triggerKind: kind === "invoked" ? 1 : 2, otherDocuments: true, otherFiles: true },
    };
    const answer = await this.server.request<EditAnswer>(EDIT_METHOD, params, asked.token);
    if (asked.token.isCancellationRequested) {
      return;
    }
    this.proposal = proposalOf(answer?.edits[0]);
    this.redraw();
    if (this.proposal === undefined && kind === "invoked") {
      showNoEdit(answer?.reason);
    }
  }

  private async apply(proposal: Proposal, editor: vscode.TextEditor): Promise<void> {
    this.clear();
    const begin = editor.document.offsetAt(proposal.range.start);
    if (!(await editor.edit((edits) => { edits.replace(proposal.range, proposal.text); }))) {
      return;
    }
    const end = editor.document.positionAt(begin + proposal.text.length);
    editor.selection = new vscode.Selection(end, end);
    if (proposal.command !== undefined) {
      const { command, arguments: args } = proposal.command;
      await this.server.request("workspace/executeCommand", { command, arguments: args as unknown });
    }
  }

  /** The proposal, if its document is as it was. */
  private valid(): Proposal | undefined {
    const { proposal } = this;
    return proposal?.document?.version === proposal?.version ? proposal : undefined;
  }

  private cancel(): void {
    clearTimeout(this.timer);
    this.asked?.cancel();
    this.asked = undefined;
  }

  private clear(): void {
    this.cancel();
    this.proposal = undefined;
    this.redraw();
  }

  /** Draw the proposal as it belongs to the cursor, or hide it. Called for each move of the cursor. */
  private redraw(): void {
    const editor = vscode.window.activeTextEditor;
    const proposal = editor && this.valid();
    const isVisible = proposal !== undefined;
    if (isVisible !== this.isVisible) {
      this.isVisible = isVisible;
      setContext("nextEditVisible", isVisible);
      this.drawing.clear();
    }
    if (editor !== undefined && proposal !== undefined) {
      this.drawing.draw(proposal, editor, isAt(proposal, editor));
    }
  }
}

/** The edit, if its document is open in the version that it was made for, or not open as when it was made. */
function proposalOf(edit: ProposedEdit | undefined): Proposal | undefined {
  if (edit === undefined) {
    return undefined;
  }
  const { uri, version } = edit.textDocument;
  const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri);
  if (document?.version !== (version ?? undefined)) {
    return undefined;
  }
  const { start, end } = edit.range;
  const range = new vscode.Range(start.line, start.character, end.line, end.character);
  const place = document?.uri ?? vscode.Uri.parse(uri, true);
  return { uri: place, document, version: document?.version, range, text: edit.text, command: edit.command, numPlaces: edit.numPlaces ?? 1 };
}

function isAt({ document, range }: Proposal, editor: vscode.TextEditor): boolean {
  const { line } = editor.selection.active;
  return editor.document === document && range.start.line <= line && line <= range.end.line;
}

async function jump({ uri, range }: Proposal): Promise<void> {
  const editor = await vscode.window.showTextDocument(uri, { selection: new vscode.Range(range.start, range.start) });
  editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
