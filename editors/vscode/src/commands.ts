// Owns the commands, and the menu of the status bar's item.
import * as vscode from "vscode";
import type { Server } from "./client";
import type { CommandName } from "./commandNames";
import type { ServerInstallation } from "./serverInstallation";
import { numbered } from "./figures";
import type { NextEdit } from "./nextEdit";
import { PURGE_INDEX_COMMAND } from "./protocol";
import { type RemovalMark, REMOVED, REMOVED_SENTENCES } from "./removal";
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
  readonly nextEdit: NextEdit;
  readonly installation: ServerInstallation;
  readonly removal: RemovalMark;
  readonly log: vscode.LogOutputChannel;
}

/** Register every command of the extension. */
export function registerCommands(parts: Parts): vscode.Disposable {
  const { server, switches, statistics, nextEdit, log } = parts;
  const table: Record<CommandName, () => unknown> = {
    menu: () => showMenu(parts),
    enable: () => switches.setEnabled(true),
    disable: () => switches.setEnabled(false),
    toggleLanguage: () => toggleLanguage(switches),
    snooze: () => snooze(switches),
    resume: () => switches.snooze(0),
    trigger,
    nextEdit: () => nextEdit.step(),
    allEdits: () => nextEdit.stepEverywhere(),
    dismissEdit: () => nextEdit.dismiss(),
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
  // While its completion list is open, the editor shows only suggestions that continue the selected item.
  await vscode.commands.executeCommand("hideSuggestWidget");
  await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
}

async function restart({ removal, server, switches }: Parts): Promise<void> {
  removal.clear();
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
    title: "Snooze Suggestions",
    placeHolder: "Suggestions resume after this time. Alt+\\ asks for one before.",
  });
  if (picked !== undefined) {
    await switches.snooze(picked.minutes);
  }
}

async function forgetIndex(server: Server): Promise<void> {
  const forget = "Rebuild";
  const answer = await vscode.window.showWarningMessage(
    "Delete the index of this workspace and build it again?",
    { modal: true, detail: "Slipstream deletes the index from disk and memory, and reads the files again." },
    forget,
  );
  if (answer !== forget) {
    return;
  }
  const params = { command: PURGE_INDEX_COMMAND, arguments: [] };
  const folders = await server.request<number>("workspace/executeCommand", params);
  void (folders === undefined
    ? vscode.window.showWarningMessage(`Slipstream could not rebuild the index. ${server.current.message}`.trim())
    : vscode.window.showInformationMessage(`Slipstream is rebuilding the index of ${numbered(folders, "folder")}.`));
}

async function removeAll({ installation, log, removal, server }: Parts): Promise<void> {
  const remove = "Remove Everything";
  const answer = await vscode.window.showWarningMessage(
    "Remove the server that Slipstream installed, with its models, indexes, logs and settings?",
    { modal: true, detail: "The server stops in all windows. Uninstall the extension afterwards, because a new window would install the server again." },
    remove,
  );
  if (answer !== remove) {
    return;
  }
  try {
    await removal.set();
    await server.stop(REMOVED);
    void vscode.window.showInformationMessage(REMOVED_SENTENCES[await installation.removeEverything()]);
  } catch (error) {
    log.error(String(error));
    void vscode.window.showErrorMessage(`Slipstream could not remove everything: ${error instanceof Error ? error.message : String(error)}`);
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
    switches.isSnoozed && { label: "$(debug-start) Resume Suggestions", command: "slipstream.resume" },
    shown.isError && { label: "$(debug-restart) Restart Server", command: "slipstream.restart" },
    shown.isError && { label: "$(gear) Settings", command: "workbench.action.openSettings" },
    !switches.isEnabled && { label: "$(zap) Switch Suggestions On", command: "slipstream.enable" },
    isWorking && { label: "$(question) Explain the Suggestion Here", command: "slipstream.why" },
    { label: "$(graph) Show Statistics", command: "slipstream.showStatistics" },
    isWorking && !switches.isSnoozed && { label: "$(bell-slash) Snooze Suggestions", command: "slipstream.snooze" },
    language !== undefined && {
      label: `$(code) Switch Suggestions ${situation.silentLanguage === undefined ? "Off" : "On"} for ${language}`,
      command: "slipstream.toggleLanguage",
    },
    switches.isEnabled && { label: "$(circle-slash) Switch Suggestions Off", command: "slipstream.disable" },
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(output) Show Log", command: "slipstream.openLog" },
    !shown.isError && { label: "$(gear) Settings", command: "workbench.action.openSettings" },
    !shown.isError && { label: "$(debug-restart) Restart Server", command: "slipstream.restart" },
    isWorking && { label: "$(trash) Rebuild the Index", command: "slipstream.forgetIndex" },
  ];
  const options = { title: "Slipstream", placeHolder: "Choose an action" };
  const picked = await vscode.window.showQuickPick(entries.filter((entry) => entry !== false), options);
  if (picked?.command !== undefined) {
    const args = picked.command === "workbench.action.openSettings" ? ["@ext:slipstream.slipstream"] : [];
    await vscode.commands.executeCommand(picked.command, ...args);
  }
}
