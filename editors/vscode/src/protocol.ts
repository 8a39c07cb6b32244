// Owns the shapes of the server's own messages.

export const EDIT_METHOD = "textDocument/copilotInlineEdit";
export const GREW_METHOD = "slipstream/suggestionGrew";
export const ACCEPTED_COMMAND = "slipstream.accepted";
export const REJECTED_EDIT_COMMAND = "slipstream.rejectedEdit";
export const PURGE_INDEX_COMMAND = "slipstream.purgeIndex";

/** The title of the server's progress while it loads the model. */
export const MODEL_PROGRESS = "Slipstream: model";

export interface ServerStatus {
  readonly busy: boolean;
  readonly message: string;
  readonly kind: "Normal" | "Warning" | "Error" | "Inactive";
  readonly state: ServerState;
  readonly percent: number | null;
}

export type ServerState = "loading" | "ready" | "error";

export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

export type Counts = Readonly<Record<string, number>>;

export interface LastSuggestion {
  readonly id: string;
  readonly response_ms: number;
  readonly num_tokens: number;
  readonly num_written: number;
  readonly num_forwards: number;
  readonly tokens_per_pass: number;
  readonly accepted_by_source: Counts;
  readonly text: string;
}

export interface IndexState {
  readonly folder: string;
  readonly state: string;
  readonly num_files: number;
  readonly num_tokens: number;
  readonly progress: { readonly done: number; readonly total: number; readonly path: string };
  readonly problem: string;
}

/** The texts to show for the names in an answer. */
export interface Texts {
  readonly rules: Readonly<Record<string, string>>;
  readonly sources: Readonly<Record<string, string>>;
  readonly stages: Readonly<Record<string, string>>;
}

/** The answer to `slipstream/stats`. */
/** Some days' figures; times are null without an answer. */
export interface Usage {
  readonly num_keys_saved: number;
  readonly num_accepted: number;
  readonly num_answered: number;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly tokens_by_source: Counts;
}

export interface Stats {
  readonly state: ServerState;
  readonly message: string;
  readonly advice: string;
  readonly progress: { readonly done: number; readonly total: number };
  readonly engine: Readonly<Record<string, unknown>>;
  readonly counters: Counts;
  readonly tokens: Counts;
  readonly rules: Counts;
  readonly accepted_by_source: Counts;
  readonly response_ms: Percentiles;
  readonly index: readonly IndexState[];
  readonly last: LastSuggestion | null;
  readonly recent_response_ms: readonly number[];
  readonly texts: Texts;
  /** Null where the server cannot keep figures by day. */
  readonly usage: { readonly today: Usage; readonly week: Usage; readonly path: string } | null;
}

/** A run of suggested characters from one source; `line` is 0-based. */
export interface Piece {
  readonly text: string;
  readonly source: string;
  readonly evidence: string;
  readonly file?: string | null;
  readonly line?: number | null;
}

/** Why there is a next edit in the document, at a 0-based line, or none. */
export interface WhyEdit {
  readonly shown: boolean;
  readonly reason: string;
  readonly line?: number;
}

/** The answer to `slipstream/why`; `rule` is the name of the rule that decided, `reason` its sentence. */
export interface Why {
  readonly triggered: boolean;
  readonly shown: boolean;
  readonly rule: string;
  readonly reason: string;
  readonly texts: Texts;
  readonly next_edit?: WhyEdit;
  readonly text?: string;
  readonly num_replaced?: number;
  readonly pieces?: readonly Piece[];
  readonly stats?: {
    readonly num_tokens: number;
    readonly num_written: number;
    readonly num_forwards: number;
    readonly num_drafted: number;
    readonly num_accepted: number;
    readonly num_prompt_tokens: number;
    readonly num_cached_tokens: number;
    readonly accepted_by_source: Counts;
    readonly ms: Counts;
    readonly finish_reason: string;
    readonly device: string;
    readonly target: string;
  };
}

interface ProtocolPosition {
  readonly line: number;
  readonly character: number;
}

/** A request at this position of this version of a document would have a longer answer now. */
export interface SuggestionGrew {
  readonly textDocument: { readonly uri: string; readonly version: number };
  readonly position: ProtocolPosition;
}

/** One edit that the server proposes; a file that is not open has no version. */
export interface ProposedEdit {
  readonly text: string;
  readonly textDocument: { readonly uri: string; readonly version: number | null };
  readonly range: { readonly start: ProtocolPosition; readonly end: ProtocolPosition };
  readonly command?: { readonly title: string; readonly command: string; readonly arguments?: unknown[] };
  /** The places of its kind in its file; in the first edit of an answer. */
  readonly numPlaces?: number;
}

/** The answer to `textDocument/copilotInlineEdit`. */
export interface EditAnswer {
  readonly edits: readonly ProposedEdit[];
  /** Why there is none. */
  readonly reason?: string;
}
