// Owns the language client: its connection to a server's process, with requests and notifications.
import * as vscode from "vscode";
import {
  type CancellationToken,
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";
import * as configuration from "./configuration";
import type { Growth } from "./growth";
import type { ServerInstallation } from "./serverInstallation";
import { type Connection, type Failure, ServerLifecycle, type ServerPhase } from "./serverLifecycle";
import type { ServerStatus } from "./protocol";
import type { Launch } from "./serverSearch";
import { ServerProcess } from "./serverProcess";
import { SCHEMES } from "./settings";

/** Which documents are completed. */
export const SELECTOR = SCHEMES.map((scheme) => ({ scheme }));

const STOP_MS = 3_000;

/** The base client shows a message for each failure; this one leaves them to the status bar. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** A client and its process, from start to end. */
class Conversation implements Connection {
  constructor(
    readonly client: LanguageClient,
    private readonly process: ServerProcess,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  open(): Promise<void> {
    return this.client.start();
  }

  async close(): Promise<void> {
    await this.client.stop(STOP_MS).catch((error: unknown) => {
      this.log.warn(`The server did not stop in time: ${String(error)}`);
    });
    this.process.end();
  }

  kill(when: "at once" | "soon"): void {
    this.process.end(when === "soon");
  }

  get lastWords(): string {
    return this.process.lastWords;
  }
}

export class Server implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<ServerPhase>();
  private readonly failures = new vscode.EventEmitter<Failure>();
  private readonly life: ServerLifecycle<Conversation>;

  readonly onDidChange = this.changes.event;
  /** A failure to show to the user. */
  readonly onDidFail = this.failures.event;

  /** `unwanted` returns the reason why the server must not run now, or undefined. */
  constructor(
    private readonly installation: ServerInstallation,
    private readonly log: vscode.LogOutputChannel,
    private readonly middleware: () => Middleware,
    private readonly growth: Growth,
    unwanted: () => string | undefined,
  ) {
    this.life = new ServerLifecycle<Conversation>({
      unwanted,
      find: (signal) => installation.find(signal),
      connect: (launch, onEnd) => this.connect(launch, onEnd),
      discard: (launch) => installation.discard(launch),
      changed: (phase) => { this.changes.fire(phase); },
      failed: (failure) => { this.failures.fire(failure); },
      log: (error) => { log.error(error instanceof Error ? error : String(error)); },
      after(ms, work) {
        const timer = setTimeout(work, ms);
        return () => { clearTimeout(timer); };
      },
      now: () => Date.now(),
    });
  }

  get current(): ServerPhase {
    return this.life.current;
  }

  /** Start unless it runs. */
  start(): Promise<void> {
    return this.life.start();
  }

  /** Stop it and free its memory. The status shows `why`. */
  stop(why?: string): Promise<void> {
    return this.life.stop(why);
  }

  /** Restart it and reset the count of crashes. */
  restart(): Promise<void> {
    return this.life.restart();
  }

  /** The server's answer, or undefined if the server is not running or does not answer. */
  async request<T>(method: string, params: unknown, token?: CancellationToken): Promise<T | undefined> {
    try {
      // An undefined token would count as a second parameter.
      return await this.running?.sendRequest<T>(method, params, ...(token === undefined ? [] : [token]));
    } catch (error) {
      this.log.debug(`${method} failed: ${String(error)}`);
      return undefined;
    }
  }

  /** Send a notification that may get lost. */
  notify(method: string, params: unknown): void {
    this.running?.sendNotification(method, params).catch((error: unknown) => {
      this.log.debug(`${method} could not be sent: ${String(error)}`);
    });
  }

  /** Show a step of the setup. */
  setStep(step: string): void {
    if (this.current.phase === "preparing") {
      this.life.set({ phase: "preparing", message: `Installing the server: ${step}.` });
    }
  }

  async dispose(): Promise<void> {
    await this.stop();
    this.changes.dispose();
    this.failures.dispose();
  }

  private get running(): LanguageClient | undefined {
    const client = this.life.connection?.client;
    return client?.isRunning() ? client : undefined;
  }

  private async connect(launch: Launch, onEnd: () => void): Promise<Conversation> {
    const process = await ServerProcess.start(launch, this.installation.storage);
    const client = this.build(process, onEnd);
    this.growth.attach(client);
    client.onNotification("didChangeStatus", (status: ServerStatus) => {
      if (this.life.connection?.client === client) {
        this.take(status);
      }
    });
    return new Conversation(client, process, this.log);
  }

  private build(process: ServerProcess, onEnd: () => void): LanguageClient {
    const options: LanguageClientOptions = {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: () => ({ slipstream: configuration.forStart() }),
      initializationFailedHandler: () => false,
      middleware: this.middleware(),
      stdioOptions: {
        stdout: () => undefined,
        stderr: (stream) => {
          process.readLines(stream, (line) => {
            this.log.info(line);
          });
        },
      },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          onEnd();
          return { action: CloseAction.DoNotRestart, handled: true, message: "The server closed the connection." };
        },
      },
    };
    return new QuietClient("slipstream", "Slipstream", () => Promise.resolve(process.child), options);
  }

  private take(status: ServerStatus): void {
    const phase = status.state === "error" ? "failed" : status.state;
    this.life.set({ phase, message: status.message, percent: status.percent ?? undefined });
  }
}
