// Owns checks of paths: programs on the PATH, and files inside of workspace folders.
import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import path from "node:path";

/** Whether `file` is `folder` or is inside of it, by its text. */
export function isInside(folder: string, file: string): boolean {
  const relative = path.relative(folder, file);
  return relative === "" || (!relative.startsWith(`..${path.sep}`) && relative !== ".." && !path.isAbsolute(relative));
}

/** Whether `file` is inside of one of `folders`, by its own path or by the target of its links. */
export async function isInsideAny(folders: readonly string[], file: string): Promise<boolean> {
  const candidates = [path.resolve(file), await resolved(file)];
  for (const folder of folders) {
    const roots = [path.resolve(folder), await resolved(folder)];
    if (roots.some((root) => candidates.some((candidate) => isInside(root, candidate)))) {
      return true;
    }
  }
  return false;
}

/** The first executable of that name on the PATH that is outside of all `avoided` folders. */
export async function findProgram(
  name: string,
  avoided: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): Promise<string | undefined> {
  const endings = process.platform === "win32" ? (environment.PATHEXT ?? ".EXE").split(";") : [""];
  // Relative entries would depend on the folder that the editor started in.
  const folders = (environment.PATH ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  for (const folder of folders) {
    for (const ending of endings) {
      const file = path.join(folder, name + ending);
      if ((await isExecutable(file)) && !(await isInsideAny(avoided, file))) {
        return file;
      }
    }
  }
  return undefined;
}

/** Whether `file` is an executable file. */
export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

async function resolved(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    return path.resolve(file);
  }
}
