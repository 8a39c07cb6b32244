// Owns reading and writing the editor's settings.
import * as vscode from "vscode";
import { type Languages, serverSettings } from "./settings";

const SECTION = "slipstream";

/** The value in effect for `key`, with the defaults of package.json. */
export function get<T>(key: string, fallback: T): T {
  return vscode.workspace.getConfiguration(SECTION).get(key, fallback);
}

/** The value in the user's own settings, for a key that is on no settings page and that no workspace may set. */
export function getOfUser(key: string): unknown {
  return vscode.workspace.getConfiguration(SECTION).inspect(key)?.globalValue;
}

/** The settings to send when the server asks for its section. */
export function forServer(): Record<string, unknown> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const readSet = (key: string): unknown => {
    const found = configuration.inspect(key);
    const values = [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue];
    return values.some((value) => value !== undefined) ? configuration.get(key) : undefined;
  };
  return serverSettings(readSet, getOfUser, vscode.workspace.isTrusted);
}

/**
 * The settings that the server starts with, before it asks for its section. They hold as long as it runs, so they are
 * only what must never be forgotten.
 */
export function forStart(): Record<string, unknown> {
  return vscode.workspace.isTrusted ? {} : { index: { enabled: false } };
}

export function languages(): Languages {
  return get<Languages>("languages", {});
}

/** Set `key` for the workspace if it has a value there already, and otherwise for the user. */
export async function set(key: string, value: unknown): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const isOfWorkspace = configuration.inspect(key)?.workspaceValue !== undefined;
  const target = isOfWorkspace ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
  await configuration.update(key, value, target);
}

/** Whether a change touches `key`. */
export function affects(event: vscode.ConfigurationChangeEvent, key: string): boolean {
  return event.affectsConfiguration(`${SECTION}.${key}`);
}
