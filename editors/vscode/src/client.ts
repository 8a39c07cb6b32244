// Owns the language client's life: start, stop, crash and restart, and what phase it is in.
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";
import { Crashes } from "./backoff";
import * as configuration from "./configuration";
import type { Environment } from "./environment";
import type { ServerStatus } from "./protocol";
import { ServerProcess } from "./serverProcess";
import { SCHEMES } from "./settings";
import { type Remedy, SetupError } from "./setupError";
import type { Phase } from "./statusText";

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
interface Connection {
  readonly client: LanguageClient;
  readonly process: ServerProcess;
}

export interface ServerPhase {
  readonly phase: Phase;
  readonly message: string;
  readonly percent?: number | undefined;
}

export interface Failure {
  readonly message: string;
  readonly remedies: readonly Remedy[];
}

export class Server implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<ServerPhase>();
  private readonly failures = new vscode.EventEmitter<Failure>();
  private readonly crashes = new Crashes();
  private connection: Connection | undefined;
  private work: Promise<void> = Promise.resolve();
  private search = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private now: ServerPhase = { phase: "off", message: "" };

  readonly onDidChange = this.changes.event;
  /** Something that the user has to know of, beside the phase. */
  readonly onDidFail = this.failures.event;

  constructor(
    private readonly environment: Environment,
    private readonly log: vscode.LogOutputChannel,
    private readonly middleware: () => Middleware,
  ) {}

  get current(): ServerPhase {
    return this.now;
  }

  /** Start unless it runs. */
  start(): Promise<void> {
    this.clearTimer();
    return this.enqueue(() => this.open());
  }

  /** End it and give its memory back. */
  stop(): Promise<void> {
    this.clearTimer();
    this.search.abort();
    return this.enqueue(() => this.close());
  }

  /** Begin anew, with all crashes forgotten. */
  async restart(): Promise<void> {
    this.crashes.clear();
    await this.stop();
    await this.start();
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
    if (this.now.phase === "preparing") {
      this.set({ phase: "preparing", message: `Setting up the server: ${step}.` });
    }
  }

  async dispose(): Promise<void> {
    await this.stop();
    this.changes.dispose();
    this.failures.dispose();
  }

  private get running(): LanguageClient | undefined {
    return this.connection?.client.isRunning() ? this.connection.client : undefined;
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.work = this.work.then(step).catch((error: unknown) => {
      this.log.error(error instanceof Error ? error : String(error));
    });
    return this.work;
  }

  private async open(): Promise<void> {
    if (this.connection !== undefined) {
      return;
    }
    this.search = new AbortController();
    this.set({ phase: "preparing", message: "Looking for the server." });
    try {
      const launch = await this.environment.find(this.search.signal);
      this.set({ phase: "starting", message: "" });
      const process = await ServerProcess.start(launch, this.environment.storage);
      await this.connect(process);
    } catch (error) {
      if (this.search.signal.aborted) {
        this.set({ phase: "off", message: "" });
      } else {
        this.fail(error);
      }
    }
  }

  private async connect(process: ServerProcess): Promise<void> {
    const connection: Connection = { process, client: this.build(process, () => { this.ended(connection); }) };
    this.connection = connection;
    connection.client.onNotification("didChangeStatus", (status: ServerStatus) => {
      this.take(status);
    });
    try {
      await connection.client.start();
    } catch (error) {
      this.log.error(`The server did not start: ${String(error)}`);
      this.ended(connection);
      return;
    }
    if (this.now.phase === "starting") {
      this.set({ phase: "loading", message: "" });
    }
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

  /** The connection ended by itself: start again a little later, or give up. */
  private ended(connection: Connection): void {
    if (this.connection !== connection) {
      return;
    }
    this.connection = undefined;
    const { process } = connection;
    process.end();
    const wait = this.crashes.add(Date.now());
    // The process's end and its last lines arrive after the end of its streams.
    setTimeout(() => {
      const reason = process.lastWords;
      this.log.error(`The server ended (${reason}).`);
      if (wait === undefined && this.connection === undefined) {
        this.fail(new SetupError(`The server ended again and again (${reason}).`, "The log has all of it.", ["retry", "log"]));
      }
    }, 200);
    if (wait !== undefined) {
      this.set({ phase: "waiting", message: `The server ended and starts again in ${wait / 1000} s.` });
      this.timer = setTimeout(() => void this.start(), wait);
    }
  }

  private async close(): Promise<void> {
    const connection = this.connection;
    this.connection = undefined;
    if (connection !== undefined) {
      await connection.client.stop(STOP_MS).catch((error: unknown) => {
        this.log.warn(`The server did not stop by itself: ${String(error)}`);
      });
      connection.process.end();
    }
    this.set({ phase: "off", message: "" });
  }

  private take(status: ServerStatus): void {
    const state = status.state ?? (status.busy ? "loading" : status.kind === "Error" ? "error" : "ready");
    const phase = state === "error" ? "failed" : state === "loading" ? "loading" : "ready";
    this.set({ phase, message: status.message, percent: status.percent ?? undefined });
  }

  private fail(error: unknown): void {
    const known = error instanceof SetupError ? error : undefined;
    const message = known ? `${known.message} ${known.advice}` : String(error);
    this.log.error(message);
    this.set({ phase: "failed", message });
    this.failures.fire({ message, remedies: known?.remedies ?? ["retry", "log"] });
  }

  private set(phase: ServerPhase): void {
    this.now = phase;
    this.changes.fire(phase);
  }

  private clearTimer(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
