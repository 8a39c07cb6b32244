// Owns the language client: its connection to a server's process, and what is said over it.
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";
import * as configuration from "./configuration";
import type { Environment } from "./environment";
import { type Connection, type Failure, Life, type ServerPhase } from "./life";
import type { ServerStatus } from "./protocol";
import type { Launch } from "./search";
import { ServerProcess } from "./serverProcess";
import { SCHEMES } from "./settings";

/** Which documents are completed. */
export const SELECTOR = SCHEMES.map((scheme) => ({ scheme }));

const STOP_MS = 3_000;

/** The stock client shows a message of its own for each failure; ours go through the status bar. */
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
      this.log.warn(`The server did not stop by itself: ${String(error)}`);
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
  private readonly life: Life<Conversation>;

  readonly onDidChange = this.changes.event;
  /** Something that the user has to know of, beside the phase. */
  readonly onDidFail = this.failures.event;

  /** `unwanted` says why there shall be no server now, if so. */
  constructor(
    private readonly environment: Environment,
    private readonly log: vscode.LogOutputChannel,
    private readonly middleware: () => Middleware,
    unwanted: () => string | undefined,
  ) {
    this.life = new Life<Conversation>({
      unwanted,
      find: (signal) => environment.find(signal),
      connect: (launch, onEnd) => this.connect(launch, onEnd),
      discard: (launch) => environment.discard(launch),
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

  /** End it and give its memory back. `why` is shown. */
  stop(why?: string): Promise<void> {
    return this.life.stop(why);
  }

  /** Begin anew, with all crashes forgotten. */
  restart(): Promise<void> {
    return this.life.restart();
  }

  /** The server's answer, or undefined while there is no server or it does not answer. */
  async request<T>(method: string, params: unknown): Promise<T | undefined> {
    try {
      return await this.running?.sendRequest<T>(method, params);
    } catch (error) {
      this.log.debug(`${method} failed: ${String(error)}`);
      return undefined;
    }
  }

  /** Tell the server something that it can do without. */
  notify(method: string, params: unknown): void {
    this.running?.sendNotification(method, params).catch((error: unknown) => {
      this.log.debug(`${method} was not sent: ${String(error)}`);
    });
  }

  /** Show a step of the set-up. */
  setStep(step: string): void {
    if (this.current.phase === "preparing") {
      this.life.set({ phase: "preparing", message: `Setting up the server: ${step}.` });
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
    const process = await ServerProcess.start(launch, this.environment.storage);
    const client = this.build(process, onEnd);
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
          return { action: CloseAction.DoNotRestart, handled: true, message: "The connection to the server closed." };
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
