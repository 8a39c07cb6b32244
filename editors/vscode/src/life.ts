// Owns a server's life: start, stop, crash and restart, and what phase it is in. Must not know the editor.
import { unlessAborted } from "./aborting";
import { Crashes } from "./backoff";
import type { Launch } from "./search";
import { type Remedy, SetupError } from "./setupError";
import type { Phase } from "./statusText";

// The process's end and its last lines arrive after the end of its streams.
const LAST_WORDS_MS = 200;
// One that ended so often before it said anything does not come up by itself any more.
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

/** A server under way, from the start of its process to its end. */
export interface Connection {
  /** Wait until it answers. */
  open(): Promise<void>;
  /** End it in good order, and by force where it does not listen. */
  close(): Promise<void>;
  /** End it by force: at once, or after a moment in which it may end by itself. */
  kill(when: "at once" | "soon"): void;
  /** How it ended, in words. */
  readonly lastWords: string;
}

/** What a life is made of. */
export interface Parts<C extends Connection> {
  /** Why there shall be no server now; undefined where there shall be one. */
  unwanted(): string | undefined;
  find(signal: AbortSignal): Promise<Launch>;
  /** Start the process; `onEnd` is called when it ends by itself. */
  connect(launch: Launch, onEnd: () => void): Promise<C>;
  /** Leave an installation that does not come up; whether the next `find` makes another one. */
  discard(launch: Launch): Promise<boolean>;
  changed(phase: ServerPhase): void;
  failed(failure: Failure): void;
  /** Note what went wrong. */
  log(error: unknown): void;
  /** Call `work` later, unless the result is called before. */
  after(ms: number, work: () => void): () => void;
  now(): number;
}

interface Held<C> {
  readonly connection: C;
  readonly launch: Launch;
  hasAnswered: boolean;
}

export class Life<C extends Connection> {
  private readonly crashes = new Crashes();
  private held: Held<C> | undefined;
  private work: Promise<void> = Promise.resolve();
  /** Aborts every start that was asked for since the last stop. */
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

  /** Start unless it runs. */
  start(): Promise<void> {
    this.forgetRestart();
    const { signal } = this.starts;
    return this.enqueue(() => this.open(signal));
  }

  /** End it, also while it starts, and give its memory back. `why` is shown. */
  stop(why = ""): Promise<void> {
    this.forgetRestart();
    this.starts.abort();
    this.starts = new AbortController();
    return this.enqueue(() => this.close(why));
  }

  /** Begin anew, with all crashes forgotten. */
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

  /** The connection ended by itself: start again a little later, or give up. */
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
      this.set({ phase: "waiting", message: `The server ended and starts again in ${wait / 1000} s.` });
      this.forgetRestart = this.parts.after(wait, () => void this.start());
    }
  }

  private async giveUp({ connection, launch }: Held<C>, signal: AbortSignal): Promise<void> {
    if (this.held !== undefined || signal.aborted) {
      return;
    }
    const isLeft = this.numSilentEnds >= MAX_SILENT_ENDS && (await this.parts.discard(launch));
    const advice = isLeft ? "Restart makes a new environment for it." : "The log has all of it.";
    this.fail(new SetupError(`The server ended again and again (${connection.lastWords}).`, advice, ["retry", "log"]));
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
