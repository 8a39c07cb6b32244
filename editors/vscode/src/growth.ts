// Owns suggestions that grow while the user looks at them: the server notifies, and the editor requests again. The
// answer begins with the text on the screen, so the ghost text is extended in place.
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { GREW_METHOD, type SuggestionGrew } from "./protocol";

// Older versions return the last answer when the same request is repeated.
const OLDEST_MINOR = 105;

/** The position of a request: the document, its version, and the cursor. */
type Place = string;

/** The last request, and whether its position has shown a suggestion since the document changed. */
interface LastRequest {
  readonly place: Place;
  hasShown: boolean;
  /** Answered, without a selected item of the completion list. */
  isSettled: boolean;
}

export class Growth {
  private last: LastRequest | undefined;
  private repeated: Place | undefined;

  /** `selector` is that of the documents with suggestions. */
  constructor(private readonly selector: vscode.DocumentSelector) {}

  /** Announce to a server that the editor requests again, and do so when it notifies. */
  attach(client: LanguageClient): void {
    const [major = 0, minor = 0] = vscode.version.split(".").map(Number);
    if (major === 1 && minor < OLDEST_MINOR) {
      return;
    }
    client.registerFeature({
      fillClientCapabilities(capabilities) {
        capabilities.experimental = { ...capabilities.experimental as object, slipstream: { suggestionGrew: true } };
      },
      initialize: () => undefined,
      getState: () => ({ kind: "static" }),
      clear: () => undefined,
    });
    client.onNotification(GREW_METHOD, (params: SuggestionGrew) => this.grew(params));
  }

  /** The context to request with: a request that repeats an automatic one is automatic too. */
  requested(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
  ): vscode.InlineCompletionContext {
    const place = placeIn(document, position);
    const hasShown = this.last?.place === place && this.last.hasShown;
    this.last = { place, hasShown, isSettled: false };
    const isRepeated = this.repeated === place;
    this.repeated = undefined;
    return isRepeated ? { ...context, triggerKind: vscode.InlineCompletionTriggerKind.Automatic } : context;
  }

  /** The editor gets `numItems` for a request. */
  answered(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    numItems: number,
  ): void {
    if (this.last?.place === placeIn(document, position)) {
      this.last.isSettled = context.selectedCompletionInfo === undefined;
      this.last.hasShown ||= numItems > 0;
    }
  }

  /** Request again, unless the user left the position, dismissed the suggestion or has a completion list open. */
  private async grew({ textDocument, position }: SuggestionGrew): Promise<void> {
    const place = placeOf(textDocument.uri, textDocument.version, position);
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || this.last?.place !== place || !this.last.isSettled) {
      return;
    }
    if (!editor.selection.isEmpty || place !== placeIn(editor.document, editor.selection.active)) {
      return;
    }
    // The editor repeats a request only where a provider has joined since.
    const joined = vscode.languages.registerInlineCompletionItemProvider(this.selector, {
      provideInlineCompletionItems: () => undefined,
    });
    this.repeated = place;
    try {
      // The first one does nothing where no suggestion is visible. It keeps the visible one until the next is there.
      await vscode.commands.executeCommand(
        `editor.action.inlineSuggest.${this.last.hasShown ? "showNext" : "trigger"}`,
      );
    } finally {
      this.repeated = undefined;
      joined.dispose();
    }
  }
}

function placeIn(document: vscode.TextDocument, position: vscode.Position): Place {
  return placeOf(document.uri.toString(), document.version, position);
}

function placeOf(uri: string, version: number, { line, character }: SuggestionGrew["position"]): Place {
  return `${uri}#${version}:${line}:${character}`;
}
