// Owns the statistics page's document: its content security policy and the places of its script and style.
// Must not know the editor.

export interface PageParts {
  readonly nonce: string;
  /** Where the editor serves local files from, as its content security policy names it. */
  readonly source: string;
  readonly script: string;
  readonly style: string;
}

/** Text for use in HTML, in attributes too. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** Nothing but our one script and style: no remote content, no inline code, no images, no fonts. */
export function contentSecurityPolicy({ nonce, source }: PageParts): string {
  return `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
}

/** The page; everything in it is drawn by the script from messages. */
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
