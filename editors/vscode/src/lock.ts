// Owns a lock between windows: a file that names its holder and is touched while it is held.
import { randomUUID } from "node:crypto";
import { readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const TOUCH_MS = 5_000;
const STALE_MS = 30_000;
const POLL_MS = 500;
const SETTLE_MS = 50;

export interface Lock {
  release(): Promise<void>;
}

/**
 * Wait until the lock at `file` is ours. A lock that nobody touched for half a minute is taken over.
 * `onWait` is called once when somebody else holds it. Rejects when `signal` aborts.
 */
export async function acquire(file: string, signal: AbortSignal, onWait: () => void = () => undefined): Promise<Lock> {
  const token = randomUUID();
  let hasWaited = false;
  for (;;) {
    signal.throwIfAborted();
    if (await create(file, token)) {
      return held(file, token);
    }
    if (!hasWaited) {
      hasWaited = true;
      onWait();
    }
    if (await isStale(file)) {
      await rm(file, { force: true });
    } else {
      await sleep(POLL_MS, undefined, { signal });
    }
  }
}

async function create(file: string, token: string): Promise<boolean> {
  try {
    await writeFile(file, token, { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      return false;
    }
    throw error;
  }
  // Two windows may find the same stale lock: the second one's removal may hit the first one's new lock.
  await sleep(SETTLE_MS);
  return isOurs(file, token);
}

function held(file: string, token: string): Lock {
  const touch = (): void => {
    const now = new Date();
    utimes(file, now, now).catch(() => undefined);
  };
  const timer = setInterval(touch, TOUCH_MS);
  return {
    async release() {
      clearInterval(timer);
      if (await isOurs(file, token)) {
        await rm(file, { force: true });
      }
    },
  };
}

async function isOurs(file: string, token: string): Promise<boolean> {
  try {
    return (await readFile(file, "utf8")) === token;
  } catch {
    return false;
  }
}

async function isStale(file: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(file)).mtimeMs > STALE_MS;
  } catch {
    return false;
  }
}
