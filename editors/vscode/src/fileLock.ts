// Owns a lock that saves windows double work: a file that names its holder and changes while it is held. A paused holder
// can resume after another one took over, so a holder must not touch files that another one may use.
import { randomUUID } from "node:crypto";
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { isGone, type Machine, parseOwner, thisMachine } from "./machine";

const BEAT_MS = 5_000;
const POLL_MS = 500;
// The holder counts as stopped after this many reads of an unchanged file. Reads are counted, not time, because
// computers sleep and clocks of two machines differ.
const MAX_LOOKS = 60;

export interface Lock {
  release(): Promise<void>;
}

/**
 * Acquire the lock at `file`. Takes over from a holder that ended, or that did not change the file for half a minute.
 * Calls `onWait` once if another process holds it. Rejects when `signal` aborts.
 */
export async function acquire(
  file: string,
  signal: AbortSignal,
  onWait: () => void = () => undefined,
  machine: Machine = thisMachine,
): Promise<Lock> {
  const token = randomUUID();
  let seen: string | undefined;
  let numLooks = 0;
  for (;;) {
    signal.throwIfAborted();
    if (await create(file, content(token, machine))) {
      return held(file, token, machine);
    }
    const found = await look(file);
    if (seen === undefined) {
      onWait();
    }
    numLooks = found.state === seen ? numLooks + 1 : 0;
    seen = found.state;
    const owner = parseOwner(found.text);
    if (numLooks >= MAX_LOOKS || (owner !== undefined && isGone(owner, machine))) {
      await rm(file, { force: true });
      numLooks = 0;
    } else {
      await machine.sleep(POLL_MS, signal);
    }
  }
}

function content(token: string, machine: Machine): string {
  return JSON.stringify({ token, ...machine.owner, beat: machine.now() });
}

async function create(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      return false;
    }
    throw error;
  }
}

function held(file: string, token: string, machine: Machine): Lock {
  const beat = async (): Promise<void> => {
    const fresh = `${file}.${token}`;
    try {
      if (await isOurs(file, token)) {
        await writeFile(fresh, content(token, machine));
        await rename(fresh, file);
      }
    } catch {
      // If another process takes over meanwhile, it only repeats the work.
      await rm(fresh, { force: true }).catch(() => undefined);
    }
  };
  let beaten = Promise.resolve();
  const stop = machine.every(BEAT_MS, () => (beaten = beat()));
  return {
    async release() {
      stop();
      // A write that is in progress would restore the file.
      await beaten;
      if (await isOurs(file, token)) {
        await rm(file, { force: true });
      }
    },
  };
}

async function look(file: string): Promise<{ readonly text: string; readonly state: string }> {
  try {
    const text = await readFile(file, "utf8");
    return { text, state: `${(await stat(file)).mtimeMs} ${text}` };
  } catch {
    return { text: "", state: "" };
  }
}

async function isOurs(file: string, token: string): Promise<boolean> {
  return (await look(file)).text.includes(token);
}
