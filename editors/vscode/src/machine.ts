// Owns time, waiting that a signal ends, and which processes are alive: the parts that tests replace.
import { hostname } from "node:os";
import { setTimeout as wait } from "node:timers/promises";

export interface Machine {
  /** Milliseconds since 1970. */
  now(): number;
  /** Wait without the time that the computer sleeps. Rejects when `signal` aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Call `work` repeatedly until the returned function is called. */
  every(ms: number, work: () => Promise<void>): () => void;
  readonly owner: Owner;
  isAlive(pid: number): boolean;
}

/** A process, identified among all machines that share a home folder. */
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
      return (error as NodeJS.ErrnoException).code !== "ESRCH"; // another user's process is alive too
    }
  },
};

/** The owner that a file names, or undefined. */
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

/** Whether a process of this machine has ended. */
export function isGone({ host, pid }: Owner, machine: Machine): boolean {
  return host === machine.owner.host && !machine.isAlive(pid);
}

/** The result of `promise`. Rejects as soon as `signal` aborts, even if `promise` never ends. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // After an abort no caller handles the rejection of `promise`.
  promise.catch(() => undefined);
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      reject(signal.reason as Error);
    };
  });
  signal.addEventListener("abort", onAbort);
  try {
    signal.throwIfAborted();
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
