// Owns versions: of Python interpreters and of the server, and which of them will do.

/** The versions of Python 3 for which all that is locked has wheels. */
export const OLDEST_MINOR = 11;
export const NEWEST_MINOR = 14;
export const PYTHONS = `Python 3.${OLDEST_MINOR} to 3.${NEWEST_MINOR}`;

/** What an interpreter says of itself when it runs `PROBE`. */
export interface Interpreter {
  readonly executable: string;
  readonly python: readonly [number, number];
  /** The version of the server that is installed with it, if any. */
  readonly server: string | undefined;
}

/** A program for an interpreter of any age: it answers with one line of JSON. */
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

/** The interpreter that answered `output` to `PROBE`, or undefined when that is no such answer. */
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

/** The version in what `slipstream --version` prints; undefined for another program of that name. */
export function parseServerVersion(output: string): string | undefined {
  return /^slipstream (\d+\.\d+\.\d+\S*)\s*$/.exec(output)?.[1];
}

/** Whether a server of version `found` speaks with an extension of version `own`: not older, same series. */
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

/** The commands under which a platform keeps its interpreters, newest first: by their versions, then by their plain names. */
export function interpreterCommands(platform: NodeJS.Platform): string[][] {
  const minors = Array.from({ length: NEWEST_MINOR - OLDEST_MINOR + 1 }, (_, index) => NEWEST_MINOR - index);
  if (platform === "win32") {
    // Without a version the launcher takes the newest there is, which may be too new.
    return [...minors.map((minor) => ["py", `-3.${minor}`]), ["python"], ["python3"]];
  }
  return [...minors.map((minor) => [`python3.${minor}`]), ["python3"], ["python"]];
}
