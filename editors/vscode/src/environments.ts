// Owns the folders that environments lie in: building them apart, publishing them whole, and removing what nobody uses.
// Must not know what is in an environment.
import { randomUUID } from "node:crypto";
import { access, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { claim, isClaimed } from "./claims";
import { acquire } from "./lock";
import { type Machine, thisMachine } from "./machine";

// An environment cannot be moved once it is made, for it holds its own path. So it is built where it stays, under a
// name of its own, and this file, renamed into place, publishes it.
const MARKER = "slipstream-ready.json";
const NAME = /^[0-9a-f]{16}(-[0-9a-f]{8})?$/;
const TRASH = "trash-";

const DAY_MS = 24 * 60 * 60 * 1000;
const KEPT_MS = 7 * DAY_MS;
/** Whoever builds for longer than this, on a machine that cannot be asked, is not waited for. */
const KEPT_UNPUBLISHED_MS = DAY_MS;

export interface Build {
  /** Names what is to be in it: 16 hexadecimal digits. */
  readonly fingerprint: string;
  /** Fills the empty `folder`. */
  readonly build: (folder: string) => Promise<void>;
  readonly isUsable: (folder: string) => Promise<boolean>;
  readonly onWait: () => void;
  readonly signal: AbortSignal;
}

/** The environments under one root, which several windows, and several machines, may use at the same time. */
export class Environments {
  constructor(
    private readonly root: string,
    private readonly machine: Machine = thisMachine,
  ) {}

  /** A published environment, which this process has claimed; undefined where there is none that can be used. */
  async find(fingerprint: string, isUsable: Build["isUsable"]): Promise<string | undefined> {
    const names = (await this.names()).filter((name) => NAME.test(name) && name.startsWith(fingerprint)).sort();
    for (const folder of names.map((name) => path.join(this.root, name))) {
      // Claimed before it is looked at: what is there then is not removed any more.
      if ((await isPublished(folder)) && (await claim(folder, this.machine)) && (await isPublished(folder))) {
        if (await isUsable(folder)) {
          return folder;
        }
      }
    }
    return undefined;
  }

  /** Every environment, also one that is not published. */
  async folders(): Promise<string[]> {
    return (await this.names()).filter((name) => NAME.test(name)).sort().map((name) => path.join(this.root, name));
  }

  /** A published environment, built now unless another window has done so meanwhile. */
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

  /** Remove the environments that nobody uses any more, but `kept`. */
  private async sweep(kept: string): Promise<void> {
    for (const folder of (await this.names()).map((name) => path.join(this.root, name))) {
      const name = path.basename(folder);
      if (folder === kept || !(NAME.test(name) || name.startsWith(TRASH)) || (await this.isUsed(folder))) {
        continue;
      }
      // Taken away under its name first: whoever claims it in this moment is seen, or finds nothing to claim.
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

/** Have nobody find the environment in `folder` any more. Whoever runs from it goes on. */
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
  // On Windows a program that still runs from it keeps it; the next set-up tries again.
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
}
