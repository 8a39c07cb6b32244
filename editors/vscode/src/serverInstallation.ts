// Owns finding or installing the server for this window: settings, trust, the Python extension, the progress bar.
import * as vscode from "vscode";
import * as configuration from "./configuration";
import { unpublish } from "./environmentStore";
import type { Installed } from "./environmentSetup";
import { type Removed, removeEverything } from "./removal";
import { findServer, type Launch, type SearchOptions, type WithProgress } from "./serverSearch";

/** The used part of the Python extension's interface. */
interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(environment: { readonly path: string }): Promise<
      { readonly executable: { readonly uri: vscode.Uri | undefined } } | undefined
    >;
  };
}

/** Finds the server for this window, and installs one if there is none. */
export class ServerInstallation {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly onStep: (step: string) => void,
  ) {}

  /** Rejects with a SetupError. Aborting `signal` cancels an installation. */
  async find(signal: AbortSignal): Promise<Launch> {
    await vscode.workspace.fs.createDirectory(this.context.globalStorageUri);
    const launch = await findServer(this.searchOptions(signal), this.withProgress(signal));
    this.log.info(`The server comes from ${launch.origin}: ${launch.command.join(" ")}`);
    return launch;
  }

  /** Make the next search install another environment; false if this one does not belong to the extension. */
  async discard({ ownFolder }: Launch): Promise<boolean> {
    if (ownFolder !== undefined) {
      await unpublish(ownFolder);
    }
    return ownFolder !== undefined;
  }

  /** Remove the installed servers and all their files. Rejects if something stays. */
  async removeEverything(): Promise<Removed> {
    return removeEverything(this.storage, (line) => {
      this.log.info(line);
    });
  }

  /** The working folder of programs, outside of all workspace folders. */
  get storage(): string {
    return this.context.globalStorageUri.fsPath;
  }

  private searchOptions(signal: AbortSignal): SearchOptions {
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
      title: "Slipstream is installing its server",
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

/** A list of texts. Any other value in settings.json counts as an empty list. */
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
    // The search continues without the Python extension's answer.
    return undefined;
  }
}
