// Owns the explanation of the suggestion at the cursor, as a list to pick from.
import * as vscode from "vscode";
import type { Server } from "./client";
import { milliseconds, numbered, tokensPerPass, wrapped } from "./figures";
import type { Piece, Texts, Why } from "./protocol";
import { label, open, originOf } from "./provenance";

type Item = vscode.QuickPickItem & { readonly piece?: Piece };

const SHORTEST_MS = 0.05; // shorter stages are not shown
const MAX_DETAIL = 80; // characters of a reason that the list shows in one row

/** Request the explanation of the cursor position and show it. */
export async function explain(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    void vscode.window.showInformationMessage("Place the cursor in a document first, then ask again.");
    return;
  }
  const { line, character } = editor.selection.active;
  const uri = editor.document.uri.toString();
  const params = { textDocument: { uri }, position: { line, character } };
  const why = await server.request<Why>("slipstream/why", params);
  if (why === undefined) {
    void vscode.window.showWarningMessage(`The server does not answer. ${server.current.message}`.trim());
    return;
  }
  const picked = await vscode.window.showQuickPick(items(why), {
    title: `Suggestion at line ${line + 1}, column ${character + 1}`,
    placeHolder: "Choose a part to open the file that it was read from",
    matchOnDescription: true,
  });
  const origin = picked?.piece && originOf(picked.piece);
  if (origin) {
    await open(origin);
  }
}

function items(why: Why): Item[] {
  const result: Item[] = [];
  const verdict = why.shown ? "$(check) Suggested" : "$(circle-slash) No suggestion";
  result.push(...explained(verdict, why.reason));
  if (why.next_edit !== undefined) {
    const { shown, reason, line } = why.next_edit;
    result.push(...explained(shown ? "$(check) Next edit" : "$(circle-slash) No next edit", shown ? `Proposed for line ${(line ?? 0) + 1}.` : reason));
  }
  const pieces = why.pieces ?? [];
  if (pieces.length > 0) {
    result.push(separator("Sources"), ...pieces.map((piece) => pieceItem(piece, why.texts)));
  }
  const { stats } = why;
  if (stats !== undefined && stats.device !== "") {
    const spent = Object.entries(stats.ms).filter(([, ms]) => ms >= SHORTEST_MS);
    result.push(
      separator("Model"),
      { label: stats.target, description: stats.device },
      separator("For developers"),
      ...drafts(stats, why.texts),
      { label: `${numbered(stats.num_prompt_tokens, "token")} in the prompt`, description: `${stats.num_cached_tokens} of them cached` },
      ...spent.map(([stage, ms]) => ({ label: milliseconds(ms), description: why.texts.stages[stage] ?? stage })),
    );
  }
  return result;
}

/** A verdict and its reason. A row of the list has one line, and cuts a longer text. */
function explained(label: string, reason: string): Item[] {
  const [first = "", ...further] = wrapped(reason, MAX_DETAIL);
  return [{ label, detail: first }, ...further.map((detail) => ({ label: "", detail }))];
}

/** The model's work for this answer, and the drafts that it accepted. */
function drafts(stats: NonNullable<Why["stats"]>, texts: Texts): Item[] {
  const { num_tokens: tokens, num_written: written, num_forwards: passes, num_drafted: drafted, num_accepted: accepted } = stats;
  if (passes === 0) {
    return [{ label: tokens > 0 ? `${numbered(tokens, "token")}, reused from an earlier answer` : "No pass of the model" }];
  }
  return [
    {
      label: `${numbered(tokens, "token")} shown, ${written} written in ${numbered(passes, "pass", "passes")}`,
      description: `${tokensPerPass(stats) ?? "0"} per pass`,
    },
    { label: `${numbered(drafted, "draft token")}, ${accepted} accepted`, description: bySource(stats.accepted_by_source, texts) },
  ];
}

function pieceItem(piece: Piece, { sources }: Texts): Item {
  const origin = originOf(piece);
  const place = origin === undefined ? piece.evidence : label(origin);
  const description = [sources[piece.source] ?? piece.source, place].filter((text) => text !== "").join(" · ");
  return { label: `${origin === undefined ? "$(blank)" : "$(go-to-file)"} ${visible(piece.text)}`, description, piece };
}

/** Code on one line, with visible line breaks. */
function visible(text: string): string {
  return text.replace(/\r?\n/g, "⏎").replace(/\t/g, "⇥").replace(/\$\(/g, "$\u200b(");
}

function bySource(counts: Readonly<Record<string, number>>, { sources }: Texts): string {
  const used = Object.entries(counts).filter(([, number]) => number > 0);
  return used.map(([source, number]) => `${number} from ${sources[source] ?? source}`).join(", ");
}

function separator(text: string): Item {
  return { label: text, kind: vscode.QuickPickItemKind.Separator };
}
