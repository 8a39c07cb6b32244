// Owns who uses a folder: a file in it for each process that said so. Must not know what else the folder holds.
import { mkdir, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { type Machine, parseOwner } from "./machine";

const CLAIMS = "claims";

/** Say that this process uses `folder`. False where there is no such folder. */
export async function claim(folder: string, machine: Machine): Promise<boolean> {
  const { host, pid } = machine.owner;
  const file = path.join(folder, CLAIMS, `${encodeURIComponent(host)}-${pid}.json`);
  const now = new Date(machine.now());
  try {
    // Not recursively: a folder that was taken away meanwhile must not come back empty.
    await mkdir(path.dirname(file)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
        throw error;
      }
    });
    await writeFile(file, JSON.stringify(machine.owner));
    await utimes(file, now, now);
    return true;
  } catch (error) {
    // A disk that is full, or that nobody may write, is no reason not to use what lies on it.
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

/**
 * Whether somebody may use `folder`: a process of this machine that lives, or any that said so within `keptMs`.
 * A folder that nobody ever claimed counts as claimed when it last changed.
 */
export async function isClaimed(folder: string, keptMs: number, machine: Machine): Promise<boolean> {
  const claims = path.join(folder, CLAIMS);
  const files = (await readdir(claims).catch((): string[] => [])).map((name) => path.join(claims, name));
  for (const file of files.length > 0 ? files : [folder]) {
    const age = await stat(file).then(
      ({ mtimeMs }) => machine.now() - mtimeMs,
      () => Infinity,
    );
    const owner = parseOwner(await readFile(file, "utf8").catch(() => ""));
    // A claim of the future is one of a clock that was set back.
    if (age < keptMs || (owner?.host === machine.owner.host && machine.isAlive(owner.pid))) {
      return true;
    }
  }
  return false;
}
