// Owns the wiring: which part knows which, and what starts them.
import * as vscode from "vscode";
import { SELECTOR, Server } from "./client";
import { registerCommands } from "./commands";
import * as configuration from "./configuration";
import { ServerInstallation } from "./serverInstallation";
import { Focus } from "./focus";
import { Growth } from "./growth";
import { NextEdit } from "./nextEdit";
import { RemovalMark, REMOVED } from "./removal";
import { showFailure } from "./status";
import { Statistics } from "./statistics";
import { StatsFeed } from "./statsFeed";
import { Status } from "./status";
import { Suggestions } from "./suggestions";
import { setContext, Switches } from "./switches";
import { openFirstTime } from "./walkthrough";

// The model stays loaded if suggestions are switched on again within this time.
const STOP_AFTER_MS = 60_000;

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Slipstream", { log: true });
  const switches = new Switches(context.workspaceState);
  const installation = new ServerInstallation(context, log, (step) => { server.setStep(step); });
  const removal = new RemovalMark(installation.storage);
  const unwanted = (): string | undefined => reasonForNone(switches, removal);
  const growth = new Growth(SELECTOR);
  const server: Server = new Server(installation, log, () => suggestions.middleware(), growth, unwanted);
  const suggestions = new Suggestions(switches, growth, (method, params) => { server.notify(method, params); });
  const feed = new StatsFeed(server);
  const status = new Status(server, switches, feed);
  const statistics = new Statistics(context.extensionUri, server, status, feed);
  const nextEdit = new NextEdit(server, switches, vscode.Uri.joinPath(context.extensionUri, "media"));
  running = server;
  context.subscriptions.push(
    log, switches, suggestions, feed, status, statistics, nextEdit, new Focus(server),
    registerCommands({ server, switches, status, statistics, nextEdit, installation, removal, log }),
    suggestions.onDidHappen((what) => {
      feed.refresh();
      if (what === "accepted") {
        setContext("hasAccepted", true);
      }
    }),
    server.onDidFail((failure) => void showFailure(failure)),
    server.onDidChange(({ phase }) => {
      setContext("ready", phase === "ready");
      if (phase === "ready" || phase === "failed") {
        feed.refresh();
      } else if (phase === "starting") {
        feed.forget();
      }
    }),
    runWhileEnabled(server, switches),
    ...watchWorkspace(server, switches),
    ...watchRemoval(server, removal, context.globalStorageUri),
  );
  void openFirstTime(context.globalState);
}

export async function deactivate(): Promise<void> {
  await running?.dispose();
}

/** The reason why the server must not run now, or undefined. */
function reasonForNone(switches: Switches, removal: RemovalMark): string | undefined {
  if (!switches.isEnabled) {
    return "Suggestions are switched off.";
  }
  return removal.isSet ? REMOVED : undefined;
}

/** Stop the server when another window removes everything, so that it does not write files again. */
function watchRemoval(server: Server, removal: RemovalMark, storage: vscode.Uri): vscode.Disposable[] {
  const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(storage, RemovalMark.NAME));
  const stop = (): void => {
    if (removal.isSet) {
      void server.stop(REMOVED);
    }
  };
  return [watcher, watcher.onDidCreate(stop), watcher.onDidChange(stop)];
}

/** Run the server while suggestions are on, and a little longer. */
function runWhileEnabled(server: Server, switches: Switches): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined;
  let wasEnabled = false;
  const follow = (): void => {
    if (switches.isEnabled === wasEnabled) {
      return;
    }
    wasEnabled = switches.isEnabled;
    clearTimeout(timer);
    if (wasEnabled) {
      void server.start();
    } else {
      timer = setTimeout(() => void server.stop(), STOP_AFTER_MS);
    }
  };
  follow();
  return vscode.Disposable.from(switches.onDidChange(follow), { dispose: () => { clearTimeout(timer); } });
}

function watchWorkspace(server: Server, switches: Switches): vscode.Disposable[] {
  return [
    // A trusted workspace's interpreter may run the server, and the limits of its start no longer apply.
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      if (switches.isEnabled) {
        void server.restart();
      }
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      const isOther = configuration.affects(event, "server") || configuration.affects(event, "sharedEngine");
      if (isOther && switches.isEnabled) {
        void server.restart();
      }
    }),
  ];
}
