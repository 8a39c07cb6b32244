// Owns reading and writing the editor's settings.
import * as vscode from "vscode";
import { type Languages, serverSettings } from "./settings";

const SECTION = "slipstream";

/** What holds for `key`, with the editor's defaults. */
export function get<T>(key: string, fallback: T): T {
  return vscode.workspace.getConfiguration(SECTION).get(key, fallback);
}

/** What the server is told, in the shape of its section. */
export function forServer(): Record<string, unknown> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const read = (key: string) => {
    const found = configuration.inspect(key);
    const values = [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue];
    return { value: configuration.get(key), isSet: values.some((value) => value !== undefined) };
  };
  return serverSettings(read, vscode.workspace.isTrusted);
}

/**
 * What the server is told before it asks for its settings. These hold as long as it runs, beneath all others,
 * so they are only what must never be forgotten.
 */
export function forStart(): Record<string, unknown> {
  return vscode.workspace.isTrusted ? {} : { index: { enabled: false } };
}

export function languages(): Languages {
  return get<Languages>("languages", {});
}

/** Set `key` for the workspace where that has its own value already, and else for the user. */
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
