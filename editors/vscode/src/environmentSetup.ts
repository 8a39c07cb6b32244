// Owns the extension's own virtual environment: making it, and installing the bundled server in it.
// Does not import the editor.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { EnvironmentStore } from "./environmentStore";
import { isExecutable } from "./paths";
import { run } from "./processes";
import { CancelledSetup, SetupError } from "./setupError";
import { type Interpreter, PYTHONS } from "./versions";

const VENV = "venv";
const SHOWN_LINES = 4;

// pip prints this each time that it cannot reach an index.
const RETRYING = /\bRetrying \(Retry\(/;

const INSTALLER = "install.py";
const NEEDED = [INSTALLER, "requirements.lock", "requirements-torch.lock"];

/** The bundled server: its wheel, the locks of its dependencies, and the program that installs both. */
export interface Bundle {
  readonly folder: string;
  readonly wheel: string;
  /** A hash of all its files. */
  readonly fingerprint: string;
}

/** A complete environment and its interpreter. */
export interface Installed {
  readonly folder: string;
  readonly python: string;
}

export interface SetupOptions {
  /** The folder of all environments. */
  readonly root: string;
  readonly bundle: Bundle;
  readonly pipArguments: readonly string[];
  /** The suitable interpreters, best first. Called only when one is needed. */
  readonly interpreters: () => Promise<readonly Interpreter[]>;
  readonly report: (step: string) => void;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

/** The bundle in `folder`, or undefined if it is not complete. */
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

/** The existing environment for `bundle`, or undefined. */
export async function existing(root: string, bundle: Bundle): Promise<Installed | undefined> {
  const folder = await new EnvironmentStore(root).find(bundle.fingerprint, isUsable);
  return folder === undefined ? undefined : { folder, python: interpreterOf(folder) };
}

/** The interpreters of all environments in `root`, of any version and in any state. */
export async function all(root: string): Promise<string[]> {
  return (await new EnvironmentStore(root).folders()).map(interpreterOf);
}

/** A complete environment: the one that another window made meanwhile, or a new one. */
export async function setUp(options: SetupOptions): Promise<Installed> {
  const { bundle, report, root, signal } = options;
  try {
    const folder = await new EnvironmentStore(root).make({
      fingerprint: bundle.fingerprint,
      build: (empty) => fill(empty, options),
      isUsable,
      onWait: () => {
        report("waiting for another window that installs it");
      },
      signal,
    });
    return { folder, python: interpreterOf(folder) };
  } catch (error) {
    throw signal.aborted ? new CancelledSetup() : error;
  }
}

/**
 * Make a virtual environment with the server in `folder`, with the first interpreter that can. Some systems package
 * `venv` apart, and some indexes lack packages for some versions.
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

/** No index answers. Another interpreter would not help. */
class Unreachable extends SetupError {}

async function makeEnvironment(folder: string, { executable, python }: Interpreter, options: SetupOptions): Promise<void> {
  options.report(`creating an environment with Python ${python.join(".")}`);
  options.log(`Creating ${folder} with ${executable}`);
  const command = [executable, "-I", "-m", "venv", "--clear", path.join(folder, VENV)];
  const outcome = await run(command, { cwd: options.root, signal: options.signal, onLine: options.log });
  if (outcome.code !== 0) {
    throw new SetupError(
      `${executable} could not create a virtual environment: ${lastLines(outcome.lines)}`,
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
  options.report("looking for packages");
  const pip = await run([...program, ...what], { cwd: root, signal, onLine });
  if (pip.code !== 0) {
    const Reason = pip.lines.some((line) => RETRYING.test(line)) ? Unreachable : SetupError;
    throw new Reason(
      `pip could not install the server: ${lastLines(pip.lines.filter((line) => !line.startsWith("[notice]")))}`,
      "The log has pip's output. If pip needs a proxy or another index, set slipstream.server.pipArguments in settings.json.",
      ["retry", "log", "settings.json"],
    );
  }
  options.report("checking the server");
  const check = await run([python, "-I", "-c", "import lsp_server.app"], { cwd: root, signal, onLine: options.log });
  if (check.code !== 0) {
    throw new SetupError(
      `The installed server does not start: ${lastLines(check.lines)}`,
      "The log has its output.",
      ["retry", "log"],
    );
  }
}

/** No interpreter is suitable. */
export function noPython(): SetupError {
  return new SetupError(
    `The server needs ${PYTHONS}, and no such interpreter was found.`,
    "Install Python from python.org or with your system's packages, or name an interpreter in the setting slipstream.server.python.",
    ["retry", "settings", "log"],
  );
}

/** The step in a line of pip's output, in a few words, or undefined. */
export function pipStep(line: string): string | undefined {
  const download = /^\s*Downloading \S*?([A-Za-z0-9._]+?)-\d\S* \(([\d.]+ [kMG]B)\)/.exec(line);
  if (download) {
    return `downloading ${download[1] ?? ""} (${download[2] ?? ""})`;
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
  return lines.slice(-SHOWN_LINES).join("\n").trim() || "it printed nothing.";
}
