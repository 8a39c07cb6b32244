// Owns the lifecycle of a server: start, stop, crash, restart, and its phase. Does not import the editor.
import { unlessAborted } from "./machine";
import type { Launch } from "./serverSearch";
import { type Remedy, SetupError } from "./setupError";
import type { Phase } from "./statusText";

// The exit code and the last lines arrive after the end of the streams.
const LAST_WORDS_MS = 200;
// After this many ends before its first answer, the environment is replaced.
const MAX_SILENT_ENDS = 3;

export interface ServerPhase {
  readonly phase: Phase;
  readonly message: string;
  readonly percent?: number | undefined;
}

export interface Failure {
  readonly message: string;
  readonly remedies: readonly Remedy[];
}

/** A running server, from the start of its process to its end. */
export interface Connection {
  /** Wait for its first answer. */
  open(): Promise<void>;
  /** Shut it down, by force if it does not react. */
  close(): Promise<void>;
  /** End it by force: at once, or after a moment to end by itself. */
  kill(when: "at once" | "soon"): void;
  /** Its exit code or signal, and its last lines. */
  readonly lastWords: string;
}

/** The operations that a lifecycle calls. */
export interface Parts<C extends Connection> {
  /** The reason why the server must not run now, or undefined. */
  unwanted(): string | undefined;
  find(signal: AbortSignal): Promise<Launch>;
  /** Start the process. Calls `onEnd` when it ends by itself. */
  connect(launch: Launch, onEnd: () => void): Promise<C>;
  /** Abandon an installation that does not start. True if the next `find` makes another one. */
  discard(launch: Launch): Promise<boolean>;
  changed(phase: ServerPhase): void;
  failed(failure: Failure): void;
  /** Log an error. */
  log(error: unknown): void;
  /** Call `work` later, unless the returned function is called before. */
  after(ms: number, work: () => void): () => void;
  now(): number;
}

interface Held<C> {
  readonly connection: C;
  readonly launch: Launch;
  hasAnswered: boolean;
}

export class ServerLifecycle<C extends Connection> {
  private readonly crashes = new Crashes();
  private held: Held<C> | undefined;
  private work: Promise<void> = Promise.resolve();
  /** Aborts every start since the last stop. */
  private starts = new AbortController();
  private forgetRestart: () => void = () => undefined;
  private numSilentEnds = 0;
  private phase: ServerPhase = { phase: "off", message: "" };

  constructor(private readonly parts: Parts<C>) {}

  get current(): ServerPhase {
    return this.phase;
  }

  get connection(): C | undefined {
    return this.held?.connection;
  }

  /** Start the server unless it runs. */
  start(): Promise<void> {
    this.forgetRestart();
    const { signal } = this.starts;
    return this.enqueue(() => this.open(signal));
  }

  /** Stop the server, also while it starts, and free its memory. The status shows `why`. */
  stop(why = ""): Promise<void> {
    this.forgetRestart();
    this.starts.abort();
    this.starts = new AbortController();
    return this.enqueue(() => this.close(why));
  }

  /** Restart the server and reset the count of crashes. */
  async restart(): Promise<void> {
    this.crashes.clear();
    void this.stop();
    await this.start();
  }

  set(phase: ServerPhase): void {
    this.phase = phase;
    this.parts.changed(phase);
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.work = this.work.then(step).catch((error: unknown) => {
      this.parts.log(error);
    });
    return this.work;
  }

  private async open(signal: AbortSignal): Promise<void> {
    if (this.held !== undefined || signal.aborted) {
      return;
    }
    const reason = this.parts.unwanted();
    if (reason !== undefined) {
      this.set({ phase: "off", message: reason });
      return;
    }
    this.set({ phase: "preparing", message: "Looking for the server." });
    try {
      const launch = await unlessAborted(this.parts.find(signal), signal);
      this.set({ phase: "starting", message: "" });
      await this.connect(launch, signal);
    } catch (error) {
      this.failUnless(signal, error);
    }
  }

  private async connect(launch: Launch, signal: AbortSignal): Promise<void> {
    const connection = await this.parts.connect(launch, () => { this.ended(held); });
    const held: Held<C> = { connection, launch, hasAnswered: false };
    this.held = held;
    try {
      await unlessAborted(connection.open(), signal);
    } catch (error) {
      if (signal.aborted) {
        this.held = undefined;
        connection.kill("at once");
        throw error;
      }
      this.parts.log(`The server did not start: ${String(error)}`);
      this.ended(held);
      return;
    }
    held.hasAnswered = true;
    if (this.phase.phase === "starting") {
      this.set({ phase: "loading", message: "" });
    }
  }

  /** The connection ended by itself: restart a little later, or give up. */
  private ended(held: Held<C>): void {
    if (this.held !== held) {
      return;
    }
    this.held = undefined;
    this.numSilentEnds = held.hasAnswered ? 0 : this.numSilentEnds + 1;
    held.connection.kill("soon");
    const wait = this.crashes.add(this.parts.now());
    const { signal } = this.starts;
    this.parts.after(LAST_WORDS_MS, () => {
      this.parts.log(`The server ended (${held.connection.lastWords}).`);
      if (wait === undefined) {
        void this.enqueue(() => this.giveUp(held, signal));
      }
    });
    if (wait !== undefined) {
      this.set({ phase: "waiting", message: `The server crashed. Restarting it in ${wait / 1000} s.` });
      this.forgetRestart = this.parts.after(wait, () => void this.start());
    }
  }

  private async giveUp({ connection, launch }: Held<C>, signal: AbortSignal): Promise<void> {
    if (this.held !== undefined || signal.aborted) {
      return;
    }
    const isLeft = this.numSilentEnds >= MAX_SILENT_ENDS && (await this.parts.discard(launch));
    const advice = isLeft ? "A restart installs it again." : "The log has its output.";
    this.fail(new SetupError(`The server crashed repeatedly (${connection.lastWords}).`, advice, ["retry", "log"]));
  }

  private async close(why: string): Promise<void> {
    this.forgetRestart();
    const held = this.held;
    this.held = undefined;
    await held?.connection.close();
    this.set({ phase: "off", message: why });
  }

  private failUnless(signal: AbortSignal, error: unknown): void {
    if (signal.aborted) {
      this.set({ phase: "off", message: "" });
    } else {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    const known = error instanceof SetupError ? error : undefined;
    const message = known ? `${known.message} ${known.advice}` : String(error);
    this.parts.log(message);
    this.set({ phase: "failed", message });
    this.parts.failed({ message, remedies: known?.remedies ?? ["retry", "log"] });
  }
}

const MAX_CRASHES = 5;
const WINDOW_MS = 3 * 60_000;
export const LONGEST_WAIT_MS = 30_000;
const FIRST_WAIT_MS = 1_000;
// A crash after this time counts as the first one.
const STABLE_MS = 10 * 60_000;

/** The times of crashes, in milliseconds. */
export class Crashes {
  private times: number[] = [];

  /** Record a crash at `now`. Returns the wait before the next start, or undefined to give up. */
  add(now: number): number | undefined {
    const last = this.times.at(-1);
    if (last !== undefined && now - last > STABLE_MS) {
      this.times = [];
    }
    this.times.push(now);
    if (this.times.filter((time) => now - time < WINDOW_MS).length >= MAX_CRASHES) {
      return undefined;
    }
    return Math.min(FIRST_WAIT_MS * 2 ** (this.times.length - 1), LONGEST_WAIT_MS);
  }

  /** Forget all crashes. */
  clear(): void {
    this.times = [];
  }
}
