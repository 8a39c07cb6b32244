// Owns what the extension and the statistics page say to each other.
import type { Piece, Stats } from "./protocol";

export interface PieceView extends Pick<Piece, "text" | "source" | "evidence"> {
  /** The place it was read from, as people write it; undefined when that is no file. */
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

/** A message of the page, or undefined for anything else. */
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
