// Owns questions about paths: what lies on the PATH, and what lies inside a workspace folder.
import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import path from "node:path";

/** Whether `file` is `folder` or lies in it, as text. */
export function isInside(folder: string, file: string): boolean {
  const relative = path.relative(folder, file);
  return relative === "" || (!relative.startsWith(`..${path.sep}`) && relative !== ".." && !path.isAbsolute(relative));
}

/** Whether `file` lies in one of `folders`, by its own name or by where its links lead. */
export async function liesInAny(folders: readonly string[], file: string): Promise<boolean> {
  const places = [path.resolve(file), await resolved(file)];
  for (const folder of folders) {
    const roots = [path.resolve(folder), await resolved(folder)];
    if (roots.some((root) => places.some((place) => isInside(root, place)))) {
      return true;
    }
  }
  return false;
}

/** The first executable of that name on the PATH that lies in none of `avoided`. */
export async function findProgram(
  name: string,
  avoided: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): Promise<string | undefined> {
  const endings = process.platform === "win32" ? (environment.PATHEXT ?? ".EXE").split(";") : [""];
  // Relative entries would depend on where the editor was started.
  const folders = (environment.PATH ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  for (const folder of folders) {
    for (const ending of endings) {
      const file = path.join(folder, name + ending);
      if ((await isExecutable(file)) && !(await liesInAny(avoided, file))) {
        return file;
      }
    }
  }
  return undefined;
}

/** Whether `file` is a file that may be run. */
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
