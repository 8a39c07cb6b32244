// Owns the commands and the menu behind the status bar's item.
import * as vscode from "vscode";
import type { Server } from "./client";
import type { CommandName } from "./commandNames";
import type { Environment } from "./environment";
import { numbered } from "./figures";
import { PURGE_INDEX_COMMAND } from "./protocol";
import { type RemovalWord, REMOVED, TOLD } from "./removal";
import type { Statistics } from "./statistics";
import type { Status } from "./status";
import { describe } from "./statusText";
import type { Switches } from "./switches";
import { openWalkthrough } from "./walkthrough";
import { explain } from "./why";

export interface Parts {
  readonly server: Server;
  readonly switches: Switches;
  readonly status: Status;
  readonly statistics: Statistics;
  readonly environment: Environment;
  readonly removal: RemovalWord;
  readonly log: vscode.LogOutputChannel;
}

/** Register every command of the extension. */
export function registerCommands(parts: Parts): vscode.Disposable {
  const { server, switches, statistics, log } = parts;
  const table: Record<CommandName, () => unknown> = {
    menu: () => showMenu(parts),
    enable: () => switches.setEnabled(true),
    disable: () => switches.setEnabled(false),
    toggleLanguage: () => toggleLanguage(switches),
    snooze: () => snooze(switches),
    resume: () => switches.snooze(0),
    trigger,
    why: () => explain(server),
    showStatistics: () => { statistics.show(); },
    restart: () => restart(parts),
    openLog: () => { log.show(); },
    forgetIndex: () => forgetIndex(server),
    openWalkthrough,
    removeEverything: () => removeAll(parts),
  };
  const registered = Object.entries(table).map(([name, action]) =>
    vscode.commands.registerCommand(`slipstream.${name}`, action),
  );
  return vscode.Disposable.from(...registered);
}

async function trigger(): Promise<void> {
  // While the editor's own list is open, it shows only what goes on from the selected item.
  await vscode.commands.executeCommand("hideSuggestWidget");
  await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
}

async function restart({ removal, server, switches }: Parts): Promise<void> {
  removal.forget();
  if (!switches.isEnabled) {
    await switches.setEnabled(true);
  }
  await server.restart();
}

async function toggleLanguage(switches: Switches): Promise<void> {
  const language = vscode.window.activeTextEditor?.document.languageId;
  if (language !== undefined) {
    await switches.toggleLanguage(language);
  }
}

async function snooze(switches: Switches): Promise<void> {
  const choices = [5, 15, 60].map((minutes) => ({ label: `${minutes} minutes`, minutes }));
  const picked = await vscode.window.showQuickPick(choices, {
    title: "Snooze Slipstream",
    placeHolder: "It resumes by itself. Alt+\\ asks for a suggestion all the same.",
  });
  if (picked !== undefined) {
    await switches.snooze(picked.minutes);
  }
}

async function forgetIndex(server: Server): Promise<void> {
  const forget = "Forget and Rebuild";
  const answer = await vscode.window.showWarningMessage(
    "Forget the index of all folders of this workspace?",
    { modal: true, detail: "It is deleted from the disk and from memory, and built again from the files." },
    forget,
  );
  if (answer !== forget) {
    return;
  }
  const params = { command: PURGE_INDEX_COMMAND, arguments: [] };
  const folders = await server.request<number>("workspace/executeCommand", params);
  void (folders === undefined
    ? vscode.window.showWarningMessage(`The index was not forgotten. ${server.current.message}`.trim())
    : vscode.window.showInformationMessage(`The index of ${numbered(folders, "folder")} is built again.`));
}

async function removeAll({ environment, log, removal, server }: Parts): Promise<void> {
  const remove = "Remove Everything";
  const answer = await vscode.window.showWarningMessage(
    "Remove the server that this extension installed, with its models, indexes, logs and settings?",
    { modal: true, detail: "All windows lose it. Uninstall the extension afterwards: a window that starts would set it up again." },
    remove,
  );
  if (answer !== remove) {
    return;
  }
  try {
    await removal.say();
    await server.stop(REMOVED);
    void vscode.window.showInformationMessage(TOLD[await environment.removeEverything()]);
  } catch (error) {
    log.error(String(error));
    void vscode.window.showErrorMessage(`Something could not be removed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

type Entry = vscode.QuickPickItem & { readonly command?: string };

async function showMenu({ status, switches }: Parts): Promise<void> {
  const { situation } = status;
  const shown = describe(situation);
  const language = vscode.window.activeTextEditor?.document.languageId;
  const isWorking = switches.isEnabled && !shown.isError;
  const entries: (Entry | false)[] = [
    { label: shown.text.replace("$(loading~spin)", "$(sync)"), detail: shown.sentence, command: shown.isError ? "slipstream.openLog" : "slipstream.showStatistics" },
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    switches.isSnoozed && { label: "$(debug-start) Resume", command: "slipstream.resume" },
    shown.isError && { label: "$(debug-restart) Restart Server", command: "slipstream.restart" },
    shown.isError && { label: "$(gear) Settings", command: "workbench.action.openSettings" },
    !switches.isEnabled && { label: "$(zap) Switch On", command: "slipstream.enable" },
    isWorking && { label: "$(question) Why This Suggestion, or None?", command: "slipstream.why" },
    { label: "$(graph) Show Statistics", command: "slipstream.showStatistics" },
    isWorking && !switches.isSnoozed && { label: "$(bell-slash) Snooze", command: "slipstream.snooze" },
    language !== undefined && {
      label: `$(code) Switch ${situation.silentLanguage === undefined ? "Off" : "On"} for ${language}`,
      command: "slipstream.toggleLanguage",
    },
    switches.isEnabled && { label: "$(circle-slash) Switch Off", command: "slipstream.disable" },
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(output) Show Log", command: "slipstream.openLog" },
    !shown.isError && { label: "$(gear) Settings", command: "workbench.action.openSettings" },
    !shown.isError && { label: "$(debug-restart) Restart Server", command: "slipstream.restart" },
    isWorking && { label: "$(trash) Forget and Rebuild the Index", command: "slipstream.forgetIndex" },
  ];
  const options = { title: "Slipstream", placeHolder: "Choose what to do" };
  const picked = await vscode.window.showQuickPick(entries.filter((entry) => entry !== false), options);
  if (picked?.command !== undefined) {
    const args = picked.command === "workbench.action.openSettings" ? ["@ext:slipstream.slipstream"] : [];
    await vscode.commands.executeCommand(picked.command, ...args);
  }
}
