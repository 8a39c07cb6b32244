// Owns the folders of environments: building each one unpublished, publishing it complete, removing unused ones.
// The caller fills an environment.
import { randomUUID } from "node:crypto";
import { access, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { acquire } from "./fileLock";
import { type Machine, parseOwner, thisMachine } from "./machine";

// An environment cannot be moved, because it contains its own path. So it is built in its final folder, and this file,
// renamed into place, publishes it.
const MARKER = "slipstream-ready.json";
const NAME = /^[0-9a-f]{16}(-[0-9a-f]{8})?$/;
const TRASH = "trash-";

const DAY_MS = 24 * 60 * 60 * 1000;
const KEPT_MS = 7 * DAY_MS;
/** An unpublished environment of another machine counts as abandoned after this time. */
const KEPT_UNPUBLISHED_MS = DAY_MS;

export interface Build {
  /** Identifies its content: 16 hexadecimal digits. */
  readonly fingerprint: string;
  /** Fills the empty `folder`. */
  readonly build: (folder: string) => Promise<void>;
  readonly isUsable: (folder: string) => Promise<boolean>;
  readonly onWait: () => void;
  readonly signal: AbortSignal;
}

/** The environments in one folder, which several windows and machines use at the same time. */
export class EnvironmentStore {
  constructor(
    private readonly root: string,
    private readonly machine: Machine = thisMachine,
  ) {}

  /** A usable published environment, claimed by this process, or undefined. */
  async find(fingerprint: string, isUsable: Build["isUsable"]): Promise<string | undefined> {
    const names = (await this.names()).filter((name) => NAME.test(name) && name.startsWith(fingerprint)).sort();
    for (const folder of names.map((name) => path.join(this.root, name))) {
      // Claim it before checking it again: no process removes an environment that is claimed.
      if ((await isPublished(folder)) && (await claim(folder, this.machine)) && (await isPublished(folder))) {
        if (await isUsable(folder)) {
          return folder;
        }
      }
    }
    return undefined;
  }

  /** Every environment, published or not. */
  async folders(): Promise<string[]> {
    return (await this.names()).filter((name) => NAME.test(name)).sort().map((name) => path.join(this.root, name));
  }

  /** A published environment: the one that another window built meanwhile, or a new one. */
  async make(wanted: Build): Promise<string> {
    await mkdir(this.root, { recursive: true });
    const lock = await acquire(path.join(this.root, "lock"), wanted.signal, wanted.onWait, this.machine);
    try {
      return (await this.find(wanted.fingerprint, wanted.isUsable)) ?? (await this.build(wanted));
    } finally {
      await lock.release();
    }
  }

  private async build(wanted: Build): Promise<string> {
    const folder = path.join(this.root, `${wanted.fingerprint}-${randomUUID().slice(0, 8)}`);
    await mkdir(folder);
    try {
      await claim(folder, this.machine);
      await wanted.build(folder);
      const other = await this.find(wanted.fingerprint, wanted.isUsable);
      if (other !== undefined) {
        await remove(folder);
        return other;
      }
      await publish(folder);
    } catch (error) {
      await remove(folder);
      throw error;
    }
    await this.sweep(folder);
    return folder;
  }

  /** Remove the environments that no process uses, except `kept`. */
  private async sweep(kept: string): Promise<void> {
    for (const folder of (await this.names()).map((name) => path.join(this.root, name))) {
      const name = path.basename(folder);
      if (folder === kept || !(NAME.test(name) || name.startsWith(TRASH)) || (await this.isUsed(folder))) {
        continue;
      }
      // Rename it first: a process that claims it at this moment is seen, or finds no folder to claim.
      const trash = path.join(this.root, `${TRASH}${randomUUID()}`);
      const isTaken = await rename(folder, trash).then(() => true, () => false);
      if (isTaken && (await this.isUsed(trash))) {
        await rename(trash, folder).catch(() => undefined);
      } else if (isTaken) {
        await remove(trash);
      }
    }
  }

  private async isUsed(folder: string): Promise<boolean> {
    return isClaimed(folder, (await isPublished(folder)) ? KEPT_MS : KEPT_UNPUBLISHED_MS, this.machine);
  }

  private async names(): Promise<string[]> {
    return readdir(this.root).catch((): string[] => []);
  }
}

/** Hide the environment in `folder` from further searches. Servers that run from it continue. */
export async function unpublish(folder: string): Promise<void> {
  await rm(path.join(folder, MARKER), { force: true });
}

async function publish(folder: string): Promise<void> {
  const fresh = path.join(folder, `${MARKER}.new`);
  await writeFile(fresh, "{}");
  await rename(fresh, path.join(folder, MARKER));
}

async function isPublished(folder: string): Promise<boolean> {
  return access(path.join(folder, MARKER)).then(() => true, () => false);
}

async function remove(folder: string): Promise<void> {
  // On Windows a running program keeps its folder; the next setup tries again.
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
}

const CLAIMS = "claims";

/** Record that this process uses `folder`. False if the folder does not exist. */
async function claim(folder: string, machine: Machine): Promise<boolean> {
  const { host, pid } = machine.owner;
  const file = path.join(folder, CLAIMS, `${encodeURIComponent(host)}-${pid}.json`);
  const now = new Date(machine.now());
  try {
    // Not recursively: a folder that was removed meanwhile must not return empty.
    await mkdir(path.dirname(file)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
        throw error;
      }
    });
    await writeFile(file, JSON.stringify(machine.owner));
    await utimes(file, now, now);
    return true;
  } catch (error) {
    // An environment on a full or read-only disk is still usable.
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

/**
 * Whether a process may use `folder`: one of this machine that is alive, or any that claimed it within `keptMs`.
 * A folder without a claim counts as claimed when it last changed.
 */
async function isClaimed(folder: string, keptMs: number, machine: Machine): Promise<boolean> {
  const claims = path.join(folder, CLAIMS);
  const files = (await readdir(claims).catch((): string[] => [])).map((name) => path.join(claims, name));
  for (const file of files.length > 0 ? files : [folder]) {
    const age = await stat(file).then(
      ({ mtimeMs }) => machine.now() - mtimeMs,
      () => Infinity,
    );
    const owner = parseOwner(await readFile(file, "utf8").catch(() => ""));
    // A claim in the future comes from a clock that was set back.
    if (age < keptMs || (owner?.host === machine.owner.host && machine.isAlive(owner.pid))) {
      return true;
    }
  }
  return false;
}
