// Owns which server to run: the one that is configured, or installed, or else our own environment.
// Must not know the editor.
import path from "node:path";
import * as managed from "./managed";
import { findProgram, isExecutable, liesInAny } from "./paths";
import { run } from "./processes";
import { SetupError } from "./setupError";
import {
  type Interpreter,
  interpreterCommands,
  isCompatible,
  isNewEnough,
  parseProbe,
  parseServerVersion,
  PROBE,
} from "./versions";

const PROBE_MS = 20_000;

// `-P` keeps whatever lies in the working folder from being imported.
const MODULE = ["-P", "-m", "lsp_server"] as const;

/** A command line that serves on its standard streams, and where it comes from, for people. */
export interface Launch {
  readonly command: readonly string[];
  readonly origin: string;
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
  work: (report: (step: string) => void, signal: AbortSignal) => Promise<string>,
) => Promise<string>;

/** The server to run. Rejects with a SetupError when there is none and none can be set up. */
export async function findServer(places: Places, withProgress: WithProgress): Promise<Launch> {
  return (
    configured(places) ??
    (await installedWithPython(places)) ??
    (await onPath(places)) ??
    (await ownEnvironment(places, withProgress))
  );
}

function configured({ command }: Places): Launch | undefined {
  return command.length > 0 ? { command, origin: "the setting slipstream.server.command" } : undefined;
}

async function installedWithPython(places: Places): Promise<Launch | undefined> {
  const asked = [places.python, places.isTrusted ? ((await places.activePython()) ?? "") : ""];
  for (const program of asked.filter((name) => name !== "")) {
    const interpreter = await probe([program], places);
    if (interpreter?.server === undefined) {
      continue;
    }
    if (isNewEnough(interpreter.python) && isCompatible(interpreter.server, places.version)) {
      return { command: serving([interpreter.executable, ...MODULE], places), origin: interpreter.executable };
    }
    places.log(`${program} has version ${interpreter.server} of the server, which does not fit ${places.version}.`);
  }
  return undefined;
}

async function onPath(places: Places): Promise<Launch | undefined> {
  const program = await findProgram("slipstream", avoided(places));
  if (program === undefined) {
    return undefined;
  }
  const options = { cwd: places.storage, timeoutMs: PROBE_MS };
  const outcome = await run([program, "--version"], options).catch(() => undefined);
  const version = parseServerVersion(outcome?.output ?? "");
  if (version !== undefined && isCompatible(version, places.version)) {
    return { command: serving([program, "serve", "--stdio"], places), origin: program };
  }
  places.log(`${program} is passed over: its version is ${version ?? "not known"}, not ${places.version}.`);
  return undefined;
}

async function ownEnvironment(places: Places, withProgress: WithProgress): Promise<Launch> {
  const bundle = await managed.readBundle(places.bundle);
  if (bundle === undefined) {
    throw new SetupError(
      "This copy of the extension brings no server.",
      "Install Slipstream with pip, or name the server's program in the setting slipstream.server.command.",
      ["settings", "retry"],
    );
  }
  const root = path.join(places.storage, "environments");
  const python =
    (await managed.existing(root, bundle)) ??
    (await withProgress((report, signal) =>
      managed.setUp({
        root,
        bundle,
        pipArguments: places.pipArguments,
        interpreters: () => interpreters(places),
        report,
        log: places.log,
        signal,
      }),
    ));
  return { command: serving([python, ...MODULE], places), origin: "its own environment" };
}

/** Every interpreter that is new enough, best first; only the named one where one is named. */
export async function interpreters(places: Places): Promise<Interpreter[]> {
  if (places.python !== "") {
    const named = await probe([places.python], places);
    if (named === undefined || !isNewEnough(named.python)) {
      const found = named === undefined ? "does not run as Python" : `is Python ${named.python.join(".")}`;
      throw new SetupError(
        `${places.python} ${found}.`,
        "Name a Python of version 3.11 or newer in the setting slipstream.server.python, or leave it empty.",
        ["settings", "retry"],
      );
    }
    return [named];
  }
  const found: Interpreter[] = [];
  for (const command of interpreterCommands(process.platform)) {
    const interpreter = await probe(command, places);
    const isNew = !found.some(({ executable }) => executable === interpreter?.executable);
    if (interpreter !== undefined && isNewEnough(interpreter.python) && isNew) {
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
  const options = { cwd: places.storage, timeoutMs: PROBE_MS };
  const outcome = await run([program, ...args, "-c", PROBE], options).catch(() => undefined);
  return outcome?.code === 0 ? parseProbe(outcome.output) : undefined;
}

/** The command of a server that was found, as the settings want it. */
function serving(command: readonly string[], { isShared }: Places): readonly string[] {
  return isShared ? [...command, "--shared"] : command;
}

function avoided({ isTrusted, folders }: Places): readonly string[] {
  return isTrusted ? [] : folders;
}
