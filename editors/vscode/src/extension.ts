// Owns the wiring: which part knows which, and what starts them.
import * as vscode from "vscode";
import { Server } from "./client";
import { registerCommands } from "./commands";
import * as configuration from "./configuration";
import { Environment } from "./environment";
import { Focus } from "./focus";
import { RemovalWord, REMOVED } from "./removal";
import { offerRemedies } from "./remedies";
import { Statistics } from "./statistics";
import { StatsFeed } from "./statsFeed";
import { Status } from "./status";
import { Suggestions } from "./suggestions";
import { setContext, Switches } from "./switches";
import { openFirstTime } from "./walkthrough";

// Switching off and on again within this time keeps the model loaded.
const STOP_AFTER_MS = 60_000;

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Slipstream", { log: true });
  const switches = new Switches(context.workspaceState);
  const environment = new Environment(context, log, (step) => { server.setStep(step); });
  const removal = new RemovalWord(environment.storage);
  const unwanted = (): string | undefined => reasonForNone(switches, removal);
  const server: Server = new Server(environment, log, () => suggestions.middleware(), unwanted);
  const suggestions = new Suggestions(switches, (method, params) => { server.notify(method, params); });
  const feed = new StatsFeed(server);
  const status = new Status(server, switches, feed);
  const statistics = new Statistics(context.extensionUri, server, status, feed);
  running = server;
  context.subscriptions.push(
    log, switches, suggestions, feed, status, statistics, new Focus(server),
    registerCommands({ server, switches, status, statistics, environment, removal, log }),
    suggestions.onDidHappen((what) => {
      feed.refresh();
      if (what === "accepted") {
        setContext("hasAccepted", true);
      }
    }),
    server.onDidFail((failure) => void offerRemedies(failure)),
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
    ...obeyRemoval(server, removal, context.globalStorageUri),
  );
  void openFirstTime(context.globalState);
}

export async function deactivate(): Promise<void> {
  await running?.dispose();
}

/** Why there shall be no server now; undefined where there shall be one. */
function reasonForNone(switches: Switches, removal: RemovalWord): string | undefined {
  if (!switches.isEnabled) {
    return "Slipstream is switched off.";
  }
  return removal.isSaid ? REMOVED : undefined;
}

/** Another window may remove everything: no server may write it anew. */
function obeyRemoval(server: Server, removal: RemovalWord, storage: vscode.Uri): vscode.Disposable[] {
  const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(storage, RemovalWord.NAME));
  const stop = (): void => {
    if (removal.isSaid) {
      void server.stop(REMOVED);
    }
  };
  return [watcher, watcher.onDidCreate(stop), watcher.onDidChange(stop)];
}

/** The server runs while suggestions are on, and a little longer. */
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
    // With trust the workspace's interpreter may run the server, and what held from its start is over.
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
