// Owns the meaning of the settings: which go to the server, and where a completion is wanted.
// Must not know the editor.

/** The settings that the server knows, as written below `slipstream`. */
export const SERVER_KEYS = [
  "target",
  "drafters",
  "draftModel",
  "device",
  "dtype",
  "deadlineMs",
  "patienceMs",
  "maxTokens",
  "multiline",
  "trigger",
  "languages",
  "suggestInComments",
  "suggestInStrings",
  "temperature",
  "candidates",
  "eagerness",
  "repositoryMemory",
  "shadow",
  "context",
  "index.enabled",
  "index.maxFiles",
  "index.exclude",
  "remote.url",
  "remote.tokenFile",
  "remote.caFile",
  "remote.model",
  "remote.tokenizer",
] as const;

/** The settings of the extension itself. */
export const OWN_KEYS = [
  "editor.enabled",
  "sharedEngine",
  "server.command",
  "server.python",
  "server.pipArguments",
  "trace.server",
] as const;

/** Which documents are completed, by where they lie. */
export const SCHEMES = ["file", "untitled", "vscode-notebook-cell"] as const;

export type Languages = Readonly<Record<string, boolean>>;

/** One setting: what holds, and whether the user said so somewhere. */
export interface Setting {
  readonly value: unknown;
  readonly isSet: boolean;
}

/**
 * What the server is told. Only what the user set, so that their `config.toml` holds for the rest; and how
 * many candidates, where this editor's default differs from the server's.
 */
export function serverSettings(read: (key: string) => Setting, isTrusted: boolean): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  const index: Record<string, unknown> = {};
  const remote: Record<string, unknown> = {};
  const groups: Readonly<Record<string, Record<string, unknown>>> = { index, remote };
  for (const key of SERVER_KEYS) {
    const { value, isSet } = read(key);
    if (isSet || key === "candidates") {
      const [first = key, name] = key.split(".");
      const group = groups[first];
      if (name !== undefined && group !== undefined) {
        group[name] = value;
      } else {
        result[key] = value;
      }
    }
  }
  if (!isTrusted) {
    index.enabled = false;
  }
  return { ...result, index, ...(Object.keys(remote).length > 0 ? { remote } : {}) };
}

/** Whether suggestions are wanted in a language; `*` speaks for those that are not named. */
export function isEnabledFor(languages: Languages, language: string): boolean {
  return languages[language] ?? languages["*"] ?? true;
}

/** `languages` with one of them switched over; what `*` says anyway is not repeated. */
export function toggled(languages: Languages, language: string): Languages {
  const wanted = !isEnabledFor(languages, language);
  const rest = Object.fromEntries(Object.entries(languages).filter(([name]) => name !== language));
  return (rest["*"] ?? true) === wanted ? rest : { ...rest, [language]: wanted };
}
