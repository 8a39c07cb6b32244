// Owns the text of the status bar in each state. Does not import the editor.
import { count, milliseconds, numbered, share } from "./figures";
import type { Stats } from "./protocol";

/** The phases of the extension and its server, in their usual order. */
export type Phase = "off" | "preparing" | "starting" | "loading" | "ready" | "waiting" | "failed";

export interface Situation {
  readonly phase: Phase;
  /** The step, reason or message of the phase, maybe empty. */
  readonly message: string;
  /** Progress of loading, 0 to 100, or undefined if unknown. */
  readonly percent: number | undefined;
  /** The end of the snooze: "14:05". */
  readonly snoozedUntil: string | undefined;
  /** The language of the active document, if suggestions are off for it. */
  readonly silentLanguage: string | undefined;
}

export interface Shown {
  readonly text: string;
  readonly isError: boolean;
  /** One sentence for the tooltip, the menu and screen readers. */
  readonly sentence: string;
}

/** The status bar's item for a situation. */
export function describe(situation: Situation): Shown {
  const { phase, message, percent, snoozedUntil, silentLanguage } = situation;
  if (phase === "failed") {
    return { text: "$(error) Slipstream", isError: true, sentence: message || "The server is not running." };
  }
  if (phase === "off") {
    return paused(message || "Suggestions are switched off.");
  }
  if (snoozedUntil !== undefined) {
    return paused(`Suggestions are snoozed until ${snoozedUntil}.`);
  }
  if (silentLanguage !== undefined) {
    return paused(`Suggestions are switched off for ${silentLanguage}.`);
  }
  if (phase === "ready") {
    return { text: "$(zap) Slipstream", isError: false, sentence: message || "Ready." };
  }
  const loaded = percent === undefined ? "" : ` ${Math.round(percent)} %`;
  return { text: `$(loading~spin) Slipstream${loaded}`, isError: false, sentence: message || WAITING[phase] };
}

const WAITING = {
  preparing: "Looking for the server.",
  starting: "Starting the server.",
  loading: "Loading the model.",
  waiting: "The server crashed. Restarting it.",
} as const;

function paused(sentence: string): Shown {
  return { text: "$(circle-slash) Slipstream", isError: false, sentence };
}

/** Rows of names and figures for the tooltip; empty before the first answer. */
export function figures(stats: Stats): [string, string][] {
  const { response_ms: response, counters } = stats;
  const rows: [string, string][] = [];
  if (response.count > 0) {
    rows.push(["Response time, median", milliseconds(response.p50)], ["Response time, 95th percentile", milliseconds(response.p95)]);
  }
  const accepted = counters.num_accepted ?? 0;
  if (response.count > 0) {
    rows.push(["Accepted suggestions", `${accepted} of ${counters.num_shown ?? 0} (${share(accepted, counters.num_shown ?? 0)})`]);
    rows.push(["Characters accepted", count(counters.num_accepted_chars ?? 0)]);
  }
  for (const { folder, state, num_files: numFiles, progress } of stats.index) {
    const name = folder.split(/[\\/]/).at(-1) ?? folder;
    const isBuilding = state === "building" && progress.total > 0;
    rows.push([`Index of ${name}`, isBuilding ? share(progress.done, progress.total) : `${state}, ${numbered(numFiles, "file")}`]);
  }
  return rows;
}
