// Owns versions of Python interpreters and of the server, and which of them are suitable.

/** The versions of Python 3 for which all locked packages have wheels. */
export const OLDEST_MINOR = 11;
export const NEWEST_MINOR = 14;
export const PYTHONS = `Python 3.${OLDEST_MINOR} to 3.${NEWEST_MINOR}`;

/** The answer of an interpreter to `PROBE`. */
export interface Interpreter {
  readonly executable: string;
  readonly python: readonly [number, number];
  /** The version of its installed server, or undefined. */
  readonly server: string | undefined;
}

/** A program for any version of Python. It prints one line of JSON. */
export const PROBE = `
import json, sys
server = None
try:
    from importlib import metadata, util
    if util.find_spec("lsp_server") is not None:
        server = metadata.version("slipstream-completion")
except Exception:
    pass
print(json.dumps({"executable": sys.executable, "python": list(sys.version_info[:2]), "server": server}))
`;

/** The interpreter that printed `output` for `PROBE`, or undefined if the output is not valid. */
export function parseProbe(output: string): Interpreter | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(output.trim().split("\n").at(-1) ?? "");
  } catch {
    return undefined;
  }
  if (typeof answer !== "object" || answer === null) {
    return undefined;
  }
  const { executable, python, server } = answer as Record<string, unknown>;
  if (typeof executable !== "string" || executable === "" || !Array.isArray(python)) {
    return undefined;
  }
  const [major, minor] = python as unknown[];
  if (typeof major !== "number" || typeof minor !== "number") {
    return undefined;
  }
  return { executable, python: [major, minor], server: typeof server === "string" ? server : undefined };
}

/** Whether Slipstream runs on this Python. */
export function isSupported([major, minor]: readonly [number, number]): boolean {
  return major === 3 && minor >= OLDEST_MINOR && minor <= NEWEST_MINOR;
}

/** The version in the output of `slipstream --version`, or undefined for another program of that name. */
export function parseServerVersion(output: string): string | undefined {
  return /^slipstream (\d+\.\d+\.\d+\S*)\s*$/.exec(output)?.[1];
}

/** Whether a server of version `found` works with an extension of version `own`: not older, same series. */
export function isCompatible(found: string, own: string): boolean {
  const [a, b] = [numbers(found), numbers(own)];
  if (a === undefined || b === undefined) {
    return false;
  }
  const [[major, minor, patch], [ownMajor, ownMinor, ownPatch]] = [a, b];
  const isSameSeries = major === ownMajor && (major > 0 || minor === ownMinor);
  return isSameSeries && (minor > ownMinor || (minor === ownMinor && patch >= ownPatch));
}

function numbers(version: string): [number, number, number] | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version);
  return match ? [Number(match[1]), Number(match[2]), Number(match[3])] : undefined;
}

/** The commands of a platform's interpreters, newest first: with versions, then the plain names. */
export function interpreterCommands(platform: NodeJS.Platform): string[][] {
  const minors = Array.from({ length: NEWEST_MINOR - OLDEST_MINOR + 1 }, (_, index) => NEWEST_MINOR - index);
  if (platform === "win32") {
    // Without a version the launcher starts the newest, which may be too new.
    return [...minors.map((minor) => ["py", `-3.${minor}`]), ["python"], ["python3"]];
  }
  return [...minors.map((minor) => [`python3.${minor}`]), ["python3"], ["python"]];
}
