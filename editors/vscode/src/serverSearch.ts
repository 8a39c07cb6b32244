// Owns the choice of the server: a configured one, an installed one, or the extension's own environment.
// Does not import the editor.
import path from "node:path";
import { unlessAborted } from "./machine";
import * as environmentSetup from "./environmentSetup";
import { findProgram, isExecutable, isInsideAny } from "./paths";
import { type Outcome, run } from "./processes";
import { SetupError } from "./setupError";
import {
  type Interpreter,
  interpreterCommands,
  isCompatible,
  isSupported,
  parseProbe,
  parseServerVersion,
  PROBE,
  PYTHONS,
} from "./versions";

const PROBE_MS = 20_000;
// The Python extension may never answer.
const ASK_MS = 10_000;

const PIP_VARIABLE = "SLIPSTREAM_PIP_ARGUMENTS";

// `-P` keeps Python from importing modules of the working folder.
const MODULE = ["-P", "-m", "lsp_server"] as const;

/** A command line that serves on its standard streams, and its origin in words. */
export interface Launch {
  readonly command: readonly string[];
  readonly origin: string;
  /** More variables for the program's environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder of the extension's environment, if the server runs from there. */
  readonly ownFolder?: string;
}

/** The inputs of the search. */
export interface SearchOptions {
  /** The setting `server.command`. */
  readonly command: readonly string[];
  /** The setting `server.python`. */
  readonly python: string;
  readonly pipArguments: readonly string[];
  /** The setting `sharedEngine`; a configured command is taken as it is. */
  readonly isShared: boolean;
  /** The interpreter of the workspace. Not called in an untrusted workspace. */
  readonly activePython: () => Promise<string | undefined>;
  /** Ends the search. */
  readonly signal: AbortSignal;
  readonly isTrusted: boolean;
  readonly folders: readonly string[];
  /** The extension's folder: the working folder of programs, with the environments. */
  readonly storage: string;
  /** The folder of the bundled server. */
  readonly bundle: string;
  readonly version: string;
  readonly log: (line: string) => void;
}

/** Shows the progress of `work`. If the user cancels it, the signal aborts. */
export type WithProgress = (
  work: (report: (step: string) => void, signal: AbortSignal) => Promise<environmentSetup.Installed>,
) => Promise<environmentSetup.Installed>;

/** A server without its environment variables. */
type Found = Omit<Launch, "environment">;

/** The server to run. Rejects with a SetupError if it finds none and cannot install one. */
export async function findServer(options: SearchOptions, withProgress: WithProgress): Promise<Launch> {
  const found =
    configured(options) ??
    (await installedWithPython(options)) ??
    (await onPath(options)) ??
    (await ownEnvironment(options, withProgress));
  return { ...found, environment: forPip(options) };
}

/** The server downloads models with pip, so it gets the arguments for pip too. */
function forPip({ pipArguments }: SearchOptions): Record<string, string> {
  return pipArguments.length > 0 ? { [PIP_VARIABLE]: JSON.stringify(pipArguments) } : {};
}

function configured({ command }: SearchOptions): Found | undefined {
  return command.length > 0 ? { command, origin: "the setting slipstream.server.command" } : undefined;
}

async function installedWithPython(options: SearchOptions): Promise<Found | undefined> {
  const asked = [options.python, options.isTrusted ? ((await activePython(options)) ?? "") : ""];
  for (const program of asked.filter((name) => name !== "")) {
    const interpreter = await probe([program], options);
    if (interpreter?.server === undefined) {
      continue;
    }
    if (isSupported(interpreter.python) && isCompatible(interpreter.server, options.version)) {
      return { command: serving([interpreter.executable, ...MODULE], options), origin: interpreter.executable };
    }
    options.log(`${program} is skipped: its server has version ${interpreter.server}, this extension needs ${options.version}.`);
  }
  return undefined;
}

/** The interpreter of the Python extension. The search continues without its answer. */
async function activePython({ activePython: ask, log, signal }: SearchOptions): Promise<string | undefined> {
  try {
    return await unlessAborted(ask(), AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]));
  } catch (error) {
    signal.throwIfAborted();
    log(`The Python extension did not answer: ${String(error)}`);
    return undefined;
  }
}

async function onPath(options: SearchOptions): Promise<Found | undefined> {
  const program = await findProgram("slipstream", avoided(options));
  if (program === undefined) {
    return undefined;
  }
  const outcome = await ask([program, "--version"], options);
  const version = parseServerVersion(outcome?.output ?? "");
  if (version !== undefined && isCompatible(version, options.version)) {
    return { command: serving([program, "serve", "--stdio"], options), origin: program };
  }
  options.log(`${program} is skipped: its version is ${version ?? "unknown"}, this extension needs ${options.version}.`);
  return undefined;
}

async function ownEnvironment(options: SearchOptions, withProgress: WithProgress): Promise<Found> {
  const bundle = await environmentSetup.readBundle(options.bundle);
  if (bundle === undefined) {
    throw new SetupError(
      "This copy of the extension does not contain the server.",
      "Install Slipstream with pip, or name the server's program in the setting slipstream.server.command.",
      ["settings", "retry"],
    );
  }
  const root = path.join(options.storage, "environments");
  const { folder, python } =
    (await environmentSetup.existing(root, bundle)) ??
    (await withProgress((report, signal) =>
      environmentSetup.setUp({
        root,
        bundle,
        pipArguments: options.pipArguments,
        interpreters: () => interpreters({ ...options, signal }),
        report,
        log: options.log,
        signal,
      }),
    ));
  return { command: serving([python, ...MODULE], options), origin: "the extension's own environment", ownFolder: folder };
}

/** The suitable interpreters, best first; only the one in the settings if there is one. */
export async function interpreters(options: SearchOptions): Promise<Interpreter[]> {
  if (options.python !== "") {
    const named = await probe([options.python], options);
    if (named === undefined || !isSupported(named.python)) {
      const found = named === undefined ? "is not a Python interpreter" : `is Python ${named.python.join(".")}`;
      throw new SetupError(
        `${options.python} ${found}.`,
        `Name ${PYTHONS} in the setting slipstream.server.python, or clear the setting.`,
        ["settings", "retry"],
      );
    }
    return [named];
  }
  const found: Interpreter[] = [];
  for (const command of interpreterCommands(process.platform)) {
    const interpreter = await probe(command, options);
    const isNew = !found.some(({ executable }) => executable === interpreter?.executable);
    if (interpreter !== undefined && isSupported(interpreter.python) && isNew) {
      found.push(interpreter);
    }
  }
  return found;
}

async function probe([name = "", ...args]: readonly string[], options: SearchOptions): Promise<Interpreter | undefined> {
  const program = path.isAbsolute(name) ? name : await findProgram(name, avoided(options));
  if (program === undefined || !(await isExecutable(program))) {
    options.log(`${name} is skipped: it is not an executable file.`);
    return undefined;
  }
  if (await isInsideAny(avoided(options), program)) {
    options.log(`${program} is skipped: it is in a workspace that is not trusted.`);
    return undefined;
  }
  const outcome = await ask([program, ...args, "-c", PROBE], options);
  return outcome?.code === 0 ? parseProbe(outcome.output) : undefined;
}

/** The output of a program, or undefined if it does not run. Rejects only if the search ends. */
async function ask(command: readonly string[], { signal, storage }: SearchOptions): Promise<Outcome | undefined> {
  const outcome = await run(command, { cwd: storage, timeoutMs: PROBE_MS, signal }).catch(() => undefined);
  signal.throwIfAborted();
  return outcome;
}

/** The command with `--shared`, if the settings share the engine. */
function serving(command: readonly string[], { isShared }: SearchOptions): readonly string[] {
  return isShared ? [...command, "--shared"] : command;
}

function avoided({ isTrusted, folders }: SearchOptions): readonly string[] {
  return isTrusted ? [] : folders;
}
