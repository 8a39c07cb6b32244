// Owns what a test plays of the machine: time, waiting, and which processes live.
import { hostname } from "node:os";
import { setTimeout as wait } from "node:timers/promises";

export interface Machine {
  /** Milliseconds since 1970, as files have them. */
  now(): number;
  /** Wait; rejects when `signal` aborts. A computer that sleeps does not count. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Call `work` again and again until the result is called. */
  every(ms: number, work: () => Promise<void>): () => void;
  readonly owner: Owner;
  isAlive(pid: number): boolean;
}

/** A process, by a name that other machines with the same home folder do not use. */
export interface Owner {
  readonly host: string;
  readonly pid: number;
}

export const thisMachine: Machine = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    await wait(ms, undefined, { signal });
  },
  every(ms, work) {
    const timer = setInterval(() => void work(), ms);
    timer.unref();
    return () => {
      clearInterval(timer);
    };
  },
  owner: { host: hostname(), pid: process.pid },
  isAlive(pid) {
    try {
      process.kill(pid, 0);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== "ESRCH"; // another user's process lives too
    }
  },
};

/** The owner in what a file says; undefined when it says no such thing. */
export function parseOwner(text: string): Owner | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { host, pid } = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  return typeof host === "string" && Number.isInteger(pid) && Number(pid) > 0 ? { host, pid: Number(pid) } : undefined;
}

/** Whether a process surely has ended: one of this machine that is not there. */
export function isGone({ host, pid }: Owner, machine: Machine): boolean {
  return host === machine.owner.host && !machine.isAlive(pid);
}
