// Owns the managed environment: a virtual environment of our own with the server that the extension brings.
// Must not know the editor.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { acquire } from "./lock";
import { isExecutable } from "./paths";
import { run } from "./processes";
import { CancelledSetup, SetupError } from "./setupError";
import type { Interpreter } from "./versions";

const MARKER = "slipstream-ready.json";
const SHOWN_LINES = 4;

/** What the extension brings: the server's wheel and the versions that it is tested with. */
export interface Bundle {
  readonly wheel: string;
  readonly constraints: string;
  /** Changes whenever one of the two does. */
  readonly fingerprint: string;
}

export interface SetupOptions {
  /** Where environments lie. */
  readonly root: string;
  readonly bundle: Bundle;
  readonly pipArguments: readonly string[];
  /** Interpreters that will do, best first; asked for only when one is needed. */
  readonly interpreters: () => Promise<readonly Interpreter[]>;
  readonly report: (step: string) => void;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

/** The wheel and the constraints in `folder`; undefined where there are none. */
export async function readBundle(folder: string): Promise<Bundle | undefined> {
  const names = await readdir(folder).catch((): string[] => []);
  const wheel = names.find((name) => name.endsWith(".whl"));
  if (wheel === undefined || !names.includes("constraints.txt")) {
    return undefined;
  }
  const files = { wheel: path.join(folder, wheel), constraints: path.join(folder, "constraints.txt") };
  const hash = createHash("sha256");
  hash.update(await readFile(files.wheel)).update(await readFile(files.constraints));
  return { ...files, fingerprint: hash.digest("hex").slice(0, 16) };
}

/** The interpreter of the environment that is already there for `bundle`; undefined when there is none. */
export async function existing(root: string, bundle: Bundle): Promise<string | undefined> {
  const folder = path.join(root, bundle.fingerprint);
  const python = interpreterOf(folder);
  const isReady = (await isExecutable(python)) && (await readFile(path.join(folder, MARKER)).catch(() => null)) !== null;
  return isReady ? python : undefined;
}

/** The interpreter of a complete environment, made now unless another window made it meanwhile. */
export async function setUp(options: SetupOptions): Promise<string> {
  const { root, bundle, signal } = options;
  try {
    await mkdir(root, { recursive: true });
    const lock = await acquire(path.join(root, "lock"), signal, () => {
      options.report("another window is setting it up");
    });
    try {
      return (await existing(root, bundle)) ?? (await create(options));
    } finally {
      await lock.release();
    }
  } catch (error) {
    throw signal.aborted ? new CancelledSetup() : error;
  }
}

async function create(options: SetupOptions): Promise<string> {
  const folder = path.join(options.root, options.bundle.fingerprint);
  try {
    await makeEnvironment(folder, options);
    await install(interpreterOf(folder), options);
    await writeFile(path.join(folder, MARKER), JSON.stringify({ wheel: path.basename(options.bundle.wheel) }));
  } catch (error) {
    await remove(folder);
    throw error;
  }
  const others = (await readdir(options.root)).filter((name) => /^[0-9a-f]{16}$/.test(name));
  await Promise.all(others.map((name) => path.join(options.root, name)).filter((other) => other !== folder).map(remove));
  return interpreterOf(folder);
}

/** An empty environment, made with the first interpreter that can: some systems split `venv` off. */
async function makeEnvironment(folder: string, options: SetupOptions): Promise<void> {
  options.report("looking for Python");
  let failure: SetupError | undefined;
  for (const { executable, python } of await options.interpreters()) {
    options.report(`making an environment with Python ${python.join(".")}`);
    options.log(`Making ${folder} with ${executable}`);
    await remove(folder);
    const command = [executable, "-I", "-m", "venv", folder];
    const outcome = await run(command, { cwd: options.root, signal: options.signal, onLine: options.log });
    if (outcome.code === 0) {
      return;
    }
    failure ??= new SetupError(
      `${executable} cannot make a virtual environment: ${lastLines(outcome.lines)}`,
      "Install its venv module (python3-venv on Debian and Ubuntu), or name another interpreter in the setting slipstream.server.python.",
      ["retry", "settings", "log"],
    );
  }
  throw failure ?? noPython();
}

async function install(python: string, options: SetupOptions): Promise<void> {
  const { bundle, pipArguments, root, signal } = options;
  const quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"];
  const what = ["--constraint", bundle.constraints, ...pipArguments, bundle.wheel];
  const onLine = (line: string): void => {
    options.log(line);
    const step = pipStep(line);
    if (step !== undefined) {
      options.report(step);
    }
  };
  options.report("asking for packages");
  const pip = await run([python, "-I", "-m", "pip", "install", ...quiet, ...what], { cwd: root, signal, onLine });
  if (pip.code !== 0) {
    throw new SetupError(
      `pip could not install the server: ${lastLines(pip.lines.filter((line) => !line.startsWith("[notice]")))}`,
      "The log has all of it. Behind a proxy, or with packages elsewhere, set slipstream.server.pipArguments.",
      ["retry", "log", "settings"],
    );
  }
  options.report("checking it");
  const check = await run([python, "-I", "-c", "import lsp_server.app"], { cwd: root, signal, onLine: options.log });
  if (check.code !== 0) {
    throw new SetupError(
      `The installed server does not start: ${lastLines(check.lines)}`,
      "The log has all of it.",
      ["retry", "log"],
    );
  }
}

/** No interpreter will do. */
export function noPython(): SetupError {
  return new SetupError(
    "Slipstream needs Python 3.11 or newer, and found none.",
    "Install Python from python.org or with your system's packages, or name an interpreter in the setting slipstream.server.python.",
    ["retry", "settings", "log"],
  );
}

/** What pip is doing, in a few words, from a line of its output. */
export function pipStep(line: string): string | undefined {
  const download = /^\s*Downloading \S*?([A-Za-z0-9._]+?)-\d\S* \(([\d.]+ [kMG]B)\)/.exec(line);
  if (download) {
    return `fetching ${download[1] ?? ""} (${download[2] ?? ""})`;
  }
  const packages = /^Installing collected packages: (.+)$/.exec(line);
  if (packages) {
    return `installing ${(packages[1] ?? "").split(",").length} packages`;
  }
  const name = /^Collecting ([A-Za-z0-9._-]+)/.exec(line);
  return name ? `looking for ${name[1] ?? ""}` : undefined;
}

function interpreterOf(folder: string): string {
  return process.platform === "win32" ? path.join(folder, "Scripts", "python.exe") : path.join(folder, "bin", "python");
}

function lastLines(lines: readonly string[]): string {
  return lines.slice(-SHOWN_LINES).join("\n").trim() || "it says nothing.";
}

async function remove(folder: string): Promise<void> {
  // On Windows a window that still runs from it keeps it; the next set-up tries again.
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
}
