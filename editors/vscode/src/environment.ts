// Owns what the editor knows about the machine's servers: settings, trust, the Python extension, the progress bar.
import * as vscode from "vscode";
import * as configuration from "./configuration";
import { unpublish } from "./environments";
import type { Installed } from "./managed";
import { type Removed, removeEverything } from "./removal";
import { findServer, type Launch, type Places, type WithProgress } from "./search";

/** The part of the Python extension's interface that is used here. */
interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(environment: { readonly path: string }): Promise<
      { readonly executable: { readonly uri: vscode.Uri | undefined } } | undefined
    >;
  };
}

/** Finds the server for this window, and sets one up where there is none. */
export class Environment {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly onStep: (step: string) => void,
  ) {}

  /** Rejects with a SetupError. Aborting `signal` cancels a set-up. */
  async find(signal: AbortSignal): Promise<Launch> {
    await vscode.workspace.fs.createDirectory(this.context.globalStorageUri);
    const launch = await findServer(this.places(signal), this.withProgress(signal));
    this.log.info(`The server comes from ${launch.origin}: ${launch.command.join(" ")}`);
    return launch;
  }

  /** Have the next search set up another environment in place of this launch's; false where it is not ours. */
  async discard({ ownFolder }: Launch): Promise<boolean> {
    if (ownFolder !== undefined) {
      await unpublish(ownFolder);
    }
    return ownFolder !== undefined;
  }

  /** Remove the servers that were set up here and all they stored. Rejects where something stays. */
  async removeEverything(): Promise<Removed> {
    return removeEverything(this.storage, (line) => {
      this.log.info(line);
    });
  }

  /** Where programs run: never in a workspace folder. */
  get storage(): string {
    return this.context.globalStorageUri.fsPath;
  }

  private places(signal: AbortSignal): Places {
    const folders = vscode.workspace.workspaceFolders ?? [];
    return {
      command: configuration.get<string[]>("server.command", []),
      python: configuration.get("server.python", ""),
      pipArguments: texts(configuration.getOfUser("server.pipArguments")),
      isShared: configuration.getOfUser("sharedEngine") !== false,
      activePython,
      signal,
      isTrusted: vscode.workspace.isTrusted,
      folders: folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath),
      storage: this.storage,
      bundle: vscode.Uri.joinPath(this.context.extensionUri, "server").fsPath,
      version: String((this.context.extension.packageJSON as { version: unknown }).version),
      log: (line) => {
        this.log.info(line);
      },
    };
  }

  private withProgress(outer: AbortSignal): WithProgress {
    const options = {
      location: vscode.ProgressLocation.Notification,
      title: "Slipstream sets up its server",
      cancellable: true,
    };
    return async (work) =>
      vscode.window.withProgress(options, async (progress, token): Promise<Installed> => {
        const controller = new AbortController();
        token.onCancellationRequested(() => {
          controller.abort();
        });
        const report = (step: string): void => {
          progress.report({ message: step });
          this.onStep(step);
        };
        return work(report, AbortSignal.any([controller.signal, outer]));
      });
  }
}

/** A list of texts; what else stands in settings.json counts as an empty one. */
function texts(value: unknown): string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : [];
}

async function activePython(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  try {
    const { environments } = await extension.activate();
    const active = environments?.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    const resolved = active && (await environments?.resolveEnvironment(active));
    return resolved?.executable.uri?.fsPath;
  } catch {
    // It is the other extension's business; without its answer the search goes on.
    return undefined;
  }
}
