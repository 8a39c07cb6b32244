// Owns the meaning of the settings: which ones the server gets, and where suggestions are on.
// Does not import the editor.
import { ADVANCED_KEYS, SHOWN_KEYS } from "./settingKeys";

/** The schemes of documents that get suggestions. */
export const SCHEMES = ["file", "untitled", "vscode-notebook-cell"] as const;

export type Languages = Readonly<Record<string, boolean>>;

/** The value that was set for a key, or undefined. */
export type Read = (key: string) => unknown;

/**
 * The settings to send: only those that were set, so that the user's `config.toml` holds for the rest. Advanced ones
 * have no entry in package.json that keeps a workspace from setting them, so they come from the user alone.
 */
export function serverSettings(readSet: Read, readOfUser: Read, isTrusted: boolean): Record<string, unknown> {
  const shown = SHOWN_KEYS.map((key) => [key, readSet(key)] as const);
  const advanced = ADVANCED_KEYS.map((key) => [key, readOfUser(key)] as const);
  const set = Object.fromEntries([...shown, ...advanced].filter(([, value]) => value !== undefined));
  return isTrusted ? set : { ...set, "index.enabled": false };
}

/** Whether suggestions are switched on for a language; `*` means every language that is not named. */
export function isEnabledFor(languages: Languages, language: string): boolean {
  return languages[language] ?? languages["*"] ?? true;
}

/** `languages` with one of them switched over, without entries that say the same as `*`. */
export function toggled(languages: Languages, language: string): Languages {
  const wanted = !isEnabledFor(languages, language);
  const rest = Object.fromEntries(Object.entries(languages).filter(([name]) => name !== language));
  return (rest["*"] ?? true) === wanted ? rest : { ...rest, [language]: wanted };
}
