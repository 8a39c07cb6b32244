// Owns which server to run: the one that is configured, or installed, or else our own environment.
// Must not know the editor.
import path from "node:path";
import { unlessAborted } from "./aborting";
import * as managed from "./managed";
import { findProgram, isExecutable, liesInAny } from "./paths";
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
// Another extension may never answer.
const ASK_MS = 10_000;

const PIP_VARIABLE = "SLIPSTREAM_PIP_ARGUMENTS";

// `-P` keeps whatever lies in the working folder from being imported.
const MODULE = ["-P", "-m", "lsp_server"] as const;

/** A command line that serves on its standard streams, and where it comes from, for people. */
export interface Launch {
  readonly command: readonly string[];
  readonly origin: string;
  /** What the program gets beside the editor's own environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder of our own environment, if it runs from there. */
  readonly ownFolder?: string;
}

/** What the search may look at. */
export interface Places {
  /** The setting `server.command`. */
  readonly command: readonly string[];
  /** The setting `server.python`. */
  readonly python: string;
  readonly pipArguments: readonly string[];
  /** The setting `sharedEngine`; a configured command is taken as it is. */
  readonly isShared: boolean;
  /** The interpreter that the workspace uses; never asked in an untrusted one. */
  readonly activePython: () => Promise<string | undefined>;
  /** Ends the search. */
  readonly signal: AbortSignal;
  readonly isTrusted: boolean;
  readonly folders: readonly string[];
  /** A folder of ours: programs run there, environments lie there. */
  readonly storage: string;
  /** The folder with the wheel. */
  readonly bundle: string;
  readonly version: string;
  readonly log: (line: string) => void;
}

/** Shows that something is set up while `work` runs; cancelling it aborts the signal. */
export type WithProgress = (
  work: (report: (step: string) => void, signal: AbortSignal) => Promise<managed.Installed>,
) => Promise<managed.Installed>;

/** A server, before it is said what it is to know of this editor. */
type Found = Omit<Launch, "environment">;

/** The server to run. Rejects with a SetupError when there is none and none can be set up. */
export async function findServer(places: Places, withProgress: WithProgress): Promise<Launch> {
  const found =
    configured(places) ??
    (await installedWithPython(places)) ??
    (await onPath(places)) ??
    (await ownEnvironment(places, withProgress));
  return { ...found, environment: forPip(places) };
}

/** Models come through pip as packages do, so the server is told what this machine's pip must be told. */
function forPip({ pipArguments }: Places): Record<string, string> {
  return pipArguments.length > 0 ? { [PIP_VARIABLE]: JSON.stringify(pipArguments) } : {};
}

function configured({ command }: Places): Found | undefined {
  return command.length > 0 ? { command, origin: "the setting slipstream.server.command" } : undefined;
}

async function installedWithPython(places: Places): Promise<Found | undefined> {
  const asked = [places.python, places.isTrusted ? ((await activePython(places)) ?? "") : ""];
  for (const program of asked.filter((name) => name !== "")) {
    const interpreter = await probe([program], places);
    if (interpreter?.server === undefined) {
      continue;
    }
    if (isSupported(interpreter.python) && isCompatible(interpreter.server, places.version)) {
      return { command: serving([interpreter.executable, ...MODULE], places), origin: interpreter.executable };
    }
    places.log(`${program} has version ${interpreter.server} of the server, which does not fit ${places.version}.`);
  }
  return undefined;
}

/** What the Python extension says; without its answer the search goes on. */
async function activePython({ activePython: ask, log, signal }: Places): Promise<string | undefined> {
  try {
    return await unlessAborted(ask(), AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]));
  } catch (error) {
    signal.throwIfAborted();
    log(`The Python extension does not say which interpreter it uses: ${String(error)}`);
    return undefined;
  }
}

async function onPath(places: Places): Promise<Found | undefined> {
  const program = await findProgram("slipstream", avoided(places));
  if (program === undefined) {
    return undefined;
  }
  const outcome = await ask([program, "--version"], places);
  const version = parseServerVersion(outcome?.output ?? "");
  if (version !== undefined && isCompatible(version, places.version)) {
    return { command: serving([program, "serve", "--stdio"], places), origin: program };
  }
  places.log(`${program} is passed over: its version is ${version ?? "not known"}, not ${places.version}.`);
  return undefined;
}

async function ownEnvironment(places: Places, withProgress: WithProgress): Promise<Found> {
  const bundle = await managed.readBundle(places.bundle);
  if (bundle === undefined) {
    throw new SetupError(
      "This copy of the extension brings no server.",
      "Install Slipstream with pip, or name the server's program in the setting slipstream.server.command.",
      ["settings", "retry"],
    );
  }
  const root = path.join(places.storage, "environments");
  const { folder, python } =
    (await managed.existing(root, bundle)) ??
    (await withProgress((report, signal) =>
      managed.setUp({
        root,
        bundle,
        pipArguments: places.pipArguments,
        interpreters: () => interpreters({ ...places, signal }),
        report,
        log: places.log,
        signal,
      }),
    ));
  return { command: serving([python, ...MODULE], places), origin: "its own environment", ownFolder: folder };
}

/** Every interpreter that will do, best first; only the named one where one is named. */
export async function interpreters(places: Places): Promise<Interpreter[]> {
  if (places.python !== "") {
    const named = await probe([places.python], places);
    if (named === undefined || !isSupported(named.python)) {
      const found = named === undefined ? "does not run as Python" : `is Python ${named.python.join(".")}`;
      throw new SetupError(
        `${places.python} ${found}.`,
        `Name ${PYTHONS} in the setting slipstream.server.python, or leave it empty.`,
        ["settings", "retry"],
      );
    }
    return [named];
  }
  const found: Interpreter[] = [];
  for (const command of interpreterCommands(process.platform)) {
    const interpreter = await probe(command, places);
    const isNew = !found.some(({ executable }) => executable === interpreter?.executable);
    if (interpreter !== undefined && isSupported(interpreter.python) && isNew) {
      found.push(interpreter);
    }
  }
  return found;
}

async function probe([name = "", ...args]: readonly string[], places: Places): Promise<Interpreter | undefined> {
  const program = path.isAbsolute(name) ? name : await findProgram(name, avoided(places));
  if (program === undefined || !(await isExecutable(program))) {
    places.log(`${name} is passed over: it is no program.`);
    return undefined;
  }
  if (await liesInAny(avoided(places), program)) {
    places.log(`${program} is passed over: it lies in a workspace that is not trusted.`);
    return undefined;
  }
  const outcome = await ask([program, ...args, "-c", PROBE], places);
  return outcome?.code === 0 ? parseProbe(outcome.output) : undefined;
}

/** What a program answers; undefined where it does not run. Rejects only when the search is ended. */
async function ask(command: readonly string[], { signal, storage }: Places): Promise<Outcome | undefined> {
  const outcome = await run(command, { cwd: storage, timeoutMs: PROBE_MS, signal }).catch(() => undefined);
  signal.throwIfAborted();
  return outcome;
}

/** The command of a server that was found, as the settings want it. */
function serving(command: readonly string[], { isShared }: Places): readonly string[] {
  return isShared ? [...command, "--shared"] : command;
}

function avoided({ isTrusted, folders }: Places): readonly string[] {
  return isTrusted ? [] : folders;
}
