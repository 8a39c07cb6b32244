// Owns the managed environment: a virtual environment of our own with the server that the extension brings.
// Must not know the editor.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { Environments } from "./environments";
import { isExecutable } from "./paths";
import { run } from "./processes";
import { CancelledSetup, SetupError } from "./setupError";
import { type Interpreter, PYTHONS } from "./versions";

const VENV = "venv";
const SHOWN_LINES = 4;

// pip says so each time that it cannot reach an index.
const RETRYING = /\bRetrying \(Retry\(/;

const INSTALLER = "install.py";
const NEEDED = [INSTALLER, "requirements.lock", "requirements-torch.lock"];

/** What the extension brings: the server's wheel, what it stands on by hash, and the program that installs both. */
export interface Bundle {
  readonly folder: string;
  readonly wheel: string;
  /** Changes whenever one of the files does. */
  readonly fingerprint: string;
}

/** An environment that is there, and the interpreter in it. */
export interface Installed {
  readonly folder: string;
  readonly python: string;
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

/** The bundle in `folder`; undefined where there is none. */
export async function readBundle(folder: string): Promise<Bundle | undefined> {
  const names = await readdir(folder).catch((): string[] => []);
  const wheel = names.find((name) => name.endsWith(".whl"));
  if (wheel === undefined || !NEEDED.every((name) => names.includes(name))) {
    return undefined;
  }
  const hash = createHash("sha256");
  for (const name of [wheel, ...NEEDED]) {
    hash.update(await readFile(path.join(folder, name)));
  }
  return { folder, wheel: path.join(folder, wheel), fingerprint: hash.digest("hex").slice(0, 16) };
}

/** The environment that is already there for `bundle`; undefined when there is none. */
export async function existing(root: string, bundle: Bundle): Promise<Installed | undefined> {
  const folder = await new Environments(root).find(bundle.fingerprint, isUsable);
  return folder === undefined ? undefined : { folder, python: interpreterOf(folder) };
}

/** The interpreters of all environments under `root`, of any version and in any state. */
export async function all(root: string): Promise<string[]> {
  return (await new Environments(root).folders()).map(interpreterOf);
}

/** A complete environment, made now unless another window made it meanwhile. */
export async function setUp(options: SetupOptions): Promise<Installed> {
  const { bundle, report, root, signal } = options;
  try {
    const folder = await new Environments(root).make({
      fingerprint: bundle.fingerprint,
      build: (empty) => fill(empty, options),
      isUsable,
      onWait: () => {
        report("another window is setting it up");
      },
      signal,
    });
    return { folder, python: interpreterOf(folder) };
  } catch (error) {
    throw signal.aborted ? new CancelledSetup() : error;
  }
}

/**
 * A virtual environment with the server in `folder`, by the first interpreter that can: some systems split `venv` off,
 * and some indexes have no packages for each.
 */
async function fill(folder: string, options: SetupOptions): Promise<void> {
  options.report("looking for Python");
  let failure: SetupError | undefined;
  for (const interpreter of await options.interpreters()) {
    try {
      await makeEnvironment(folder, interpreter, options);
      await install(interpreterOf(folder), options);
      return;
    } catch (error) {
      if (!(error instanceof SetupError) || error instanceof Unreachable) {
        throw error;
      }
      options.log(error.message);
      failure ??= error;
    }
  }
  throw failure ?? noPython();
}

/** No index answers, which another interpreter would not change. */
class Unreachable extends SetupError {}

async function makeEnvironment(folder: string, { executable, python }: Interpreter, options: SetupOptions): Promise<void> {
  options.report(`making an environment with Python ${python.join(".")}`);
  options.log(`Making ${folder} with ${executable}`);
  const command = [executable, "-I", "-m", "venv", "--clear", path.join(folder, VENV)];
  const outcome = await run(command, { cwd: options.root, signal: options.signal, onLine: options.log });
  if (outcome.code !== 0) {
    throw new SetupError(
      `${executable} cannot make a virtual environment: ${lastLines(outcome.lines)}`,
      "Install its venv module (python3-venv on Debian and Ubuntu), or name another interpreter in the setting slipstream.server.python.",
      ["retry", "settings", "log"],
    );
  }
}

async function install(python: string, options: SetupOptions): Promise<void> {
  const { bundle, pipArguments, root, signal } = options;
  const program = [python, "-I", path.join(bundle.folder, INSTALLER), "--locks", bundle.folder];
  const what = [...pipArguments.map((argument) => `--pip-argument=${argument}`), bundle.wheel];
  const onLine = (line: string): void => {
    options.log(line);
    const step = pipStep(line);
    if (step !== undefined) {
      options.report(step);
    }
  };
  options.report("asking for packages");
  const pip = await run([...program, ...what], { cwd: root, signal, onLine });
  if (pip.code !== 0) {
    const Reason = pip.lines.some((line) => RETRYING.test(line)) ? Unreachable : SetupError;
    throw new Reason(
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
    `Slipstream needs ${PYTHONS}, and found none.`,
    "Install one from python.org or with your system's packages, or name an interpreter in the setting slipstream.server.python.",
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

async function isUsable(folder: string): Promise<boolean> {
  return isExecutable(interpreterOf(folder));
}

function interpreterOf(folder: string): string {
  const venv = path.join(folder, VENV);
  return process.platform === "win32" ? path.join(venv, "Scripts", "python.exe") : path.join(venv, "bin", "python");
}

function lastLines(lines: readonly string[]): string {
  return lines.slice(-SHOWN_LINES).join("\n").trim() || "it says nothing.";
}
