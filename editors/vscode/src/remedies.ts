// Owns the message about a failure and its buttons.
import * as vscode from "vscode";
import type { Failure } from "./life";
import type { Remedy } from "./setupError";

const BUTTONS: Readonly<Record<Remedy, { readonly title: string; readonly command: string; readonly args: string[] }>> = {
  retry: { title: "Restart", command: "slipstream.restart", args: [] },
  settings: { title: "Settings", command: "workbench.action.openSettings", args: ["@ext:slipstream.slipstream server"] },
  log: { title: "Show Log", command: "slipstream.openLog", args: [] },
};

/** Say what is wrong and offer what may help. */
export async function offerRemedies({ message, remedies }: Failure): Promise<void> {
  const buttons = remedies.map((remedy) => BUTTONS[remedy]);
  const picked = await vscode.window.showErrorMessage(`Slipstream: ${message}`, ...buttons.map(({ title }) => title));
  const button = buttons.find(({ title }) => title === picked);
  if (button !== undefined) {
    await vscode.commands.executeCommand(button.command, ...button.args);
  }
}
