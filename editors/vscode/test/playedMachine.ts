// Owns a machine that tests control: its time advances only by a test's command.
import type { Machine, Owner } from "../src/machine";

const STEP_MS = 500;

/** Work under way, and whether it has ended. */
export class Followed<T> {
  isOver = false;
  readonly promise: Promise<T>;

  constructor(promise: Promise<T>) {
    this.promise = promise.finally(() => {
      this.isOver = true;
    });
    this.promise.catch(() => undefined);
  }
}

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

interface Beat {
  readonly ms: number;
  readonly work: () => Promise<void>;
  next: number;
}

/** Windows on one computer: each has a machine of its own, so that one can stand still while another goes on. */
export class Computer {
  private static nextPid = 1000; // shared by all machines, so that no two processes have the same one
  private readonly living = new Set<number>();

  constructor(readonly host = "here") {}

  window(): PlayedMachine {
    const pid = Computer.nextPid++;
    this.living.add(pid);
    return new PlayedMachine({ host: this.host, pid }, this.living);
  }
}

export class PlayedMachine implements Machine {
  private time = Date.now();
  private sleepers: Sleeper[] = [];
  private fellAsleep = (): void => undefined;
  private readonly beats = new Set<Beat>();

  constructor(
    readonly owner: Owner,
    private readonly living: Set<number>,
  ) {}

  now(): number {
    return this.time;
  }

  isAlive(pid: number): boolean {
    return this.living.has(pid);
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.sleepers.push({ until: this.time + ms, wake: resolve });
      this.fellAsleep();
      signal.addEventListener("abort", () => {
        reject(signal.reason as Error);
      });
    });
  }

  every(ms: number, work: () => Promise<void>): () => void {
    const beat = { ms, work, next: this.time + ms };
    this.beats.add(beat);
    return () => {
      this.beats.delete(beat);
    };
  }

  /** The process ends, whatever it was at. */
  end(): void {
    this.living.delete(this.owner.pid);
    this.sleepers = [];
    this.beats.clear();
  }

  /** The clock goes on while the computer sleeps: nothing runs meanwhile. */
  sleepThrough(ms: number): void {
    this.time += ms;
  }

  /** Advance time until `work` has ended, but at most by `ms`. */
  async run(ms: number, work: Followed<unknown>): Promise<void> {
    await this.untilAsleep(work);
    for (const end = this.time + ms; this.time < end && !work.isOver; ) {
      this.time += STEP_MS;
      for (const beat of [...this.beats].filter(({ next }) => next <= this.time)) {
        beat.next = this.time + beat.ms;
        await beat.work();
      }
      const due = this.sleepers.filter(({ until }) => until <= this.time);
      this.sleepers = this.sleepers.filter(({ until }) => until > this.time);
      due.forEach(({ wake }) => {
        wake();
      });
      if (due.length > 0) {
        await this.untilAsleep(work);
      }
    }
  }

  /** Until `work` sleeps or has ended, however long the disk takes. */
  private async untilAsleep(work: Followed<unknown>): Promise<void> {
    if (this.sleepers.length > 0 || work.isOver) {
      return;
    }
    const asleep = new Promise<void>((resolve) => {
      this.fellAsleep = resolve;
    });
    await Promise.race([asleep, work.promise.catch(() => undefined)]);
  }
}
