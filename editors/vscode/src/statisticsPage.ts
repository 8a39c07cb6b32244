// Owns the statistics page: the messages between it and the extension, its document and its security policy.
// Does not import the editor.
import type { Piece, Stats } from "./protocol";

export interface PieceView extends Pick<Piece, "text" | "source" | "evidence"> {
  /** The label of its file and line, or undefined if it was not read from a file. */
  readonly place: string | undefined;
}

export interface PageState {
  /** The state in one sentence, and whether it is an error. */
  readonly sentence: string;
  readonly isError: boolean;
  readonly stats: Stats | undefined;
  readonly pieces: readonly PieceView[];
}

export type ToPage = { readonly type: "state" } & PageState;

export type FromPage =
  | { readonly type: "ready" }
  | { readonly type: "open"; readonly piece: number };

/** A valid message of the page, or undefined. */
export function parse(message: unknown): FromPage | undefined {
  if (typeof message !== "object" || message === null) {
    return undefined;
  }
  const { type, piece } = message as Record<string, unknown>;
  if (type === "ready") {
    return { type };
  }
  return type === "open" && typeof piece === "number" && Number.isInteger(piece) ? { type, piece } : undefined;
}

export interface PageParts {
  readonly nonce: string;
  /** The source of local files in the editor's content security policy. */
  readonly source: string;
  readonly script: string;
  readonly style: string;
}

/** Text escaped for HTML and its attributes. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** Allows one script and one style: no remote content, inline code, images or fonts. */
export function contentSecurityPolicy({ nonce, source }: PageParts): string {
  return `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
}

/** The document. Its script draws the content from messages. */
export function document(parts: PageParts): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeHtml(contentSecurityPolicy(parts))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Slipstream</title>
<link rel="stylesheet" href="${escapeHtml(parts.style)}">
</head>
<body>
<main id="page" aria-busy="true"><p class="quiet">Waiting for the server.</p></main>
<script nonce="${escapeHtml(parts.nonce)}" src="${escapeHtml(parts.script)}"></script>
</body>
</html>`;
}
