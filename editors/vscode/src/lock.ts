// Owns a lock between windows that saves them double work: a file that names its holder and changes while it is held.
// It promises no more than that. A holder that stood still may come back while another works, so whoever holds it must
// touch nothing that another may use.
import { randomUUID } from "node:crypto";
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { isGone, type Machine, parseOwner, thisMachine } from "./machine";

const BEAT_MS = 5_000;
const POLL_MS = 500;
// So often the file is looked at before its holder counts as standing still. Looks are counted, not time: while the
// computer sleeps nobody looks, and clocks of two machines need not agree.
const MAX_LOOKS = 60;

export interface Lock {
  release(): Promise<void>;
}

/**
 * Wait until the lock at `file` is ours. One whose holder has ended, or did not move while we looked for half a minute,
 * is taken over. `onWait` is called once when somebody else holds it. Rejects when `signal` aborts.
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
      // Whoever takes it over only does work that was being done.
      await rm(fresh, { force: true }).catch(() => undefined);
    }
  };
  let beaten = Promise.resolve();
  const stop = machine.every(BEAT_MS, () => (beaten = beat()));
  return {
    async release() {
      stop();
      // One that is under way would put the file back.
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
