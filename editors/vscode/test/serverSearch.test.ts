// Owns the tests of finding and setting up a server, with real programs and a real Python.
import assert from "node:assert/strict";
import { chmod, copyFile, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { existing, type Installed, pipStep, readBundle, setUp } from "../src/environmentSetup";
import { findProgram, isInside } from "../src/paths";
import { run } from "../src/processes";
import { findServer, interpreters, type SearchOptions } from "../src/serverSearch";
import { ServerProcess } from "../src/serverProcess";
import { CancelledSetup, SetupError } from "../src/setupError";
import type { Interpreter } from "../src/versions";
import { temporaryFolder } from "./temporaryFolder";

const PATH = process.env.PATH ?? "";
const root = path.resolve("..", "..", "..", ".."); // tests run in out/test
let folder = "";

beforeEach(async () => {
  folder = await temporaryFolder();
});

afterEach(() => {
  process.env.PATH = PATH;
});

const noProgress = (): Promise<Installed> => Promise.reject(new Error("nothing should be set up"));

function places(changes: Partial<SearchOptions> = {}): SearchOptions {
  return {
    command: [],
    python: "",
    pipArguments: [],
    isShared: false,
    activePython: () => Promise.resolve(undefined),
    signal: new AbortController().signal,
    isTrusted: true,
    folders: [path.join(folder, "workspace")],
    storage: folder,
    bundle: path.join(folder, "server"),
    version: "0.1.0",
    log: () => undefined,
    ...changes,
  };
}

/** A shell script in a folder below the test's own. */
async function program(where: string, name: string, script: string): Promise<string> {
  const file = path.join(folder, where, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\n${script}\n`);
  await chmod(file, 0o755);
  return file;
}

/** Something that answers as a Python with a server in it. */
async function python(where: string, server: string | null, version: [number, number] = [3, 12]): Promise<string> {
  const file = path.join(folder, where, "python3");
  const answer = JSON.stringify({ executable: file, python: version, server });
  return program(where, "python3", `echo '${answer}'`);
}

test("the configured command goes before everything", async () => {
  const command = ["/opt/slipstream", "serve"];
  assert.deepEqual((await findServer(places({ command }), noProgress)).command, command);
});

test("an interpreter with the server runs it, away from what lies in the working folder", async () => {
  const file = await python("env/bin", "0.1.2");
  const launch = await findServer(places({ activePython: () => Promise.resolve(file) }), noProgress);
  assert.deepEqual(launch.command, [file, "-P", "-m", "lsp_server"]);
});

test("every server gets the arguments for pip, because it downloads models with pip", async () => {
  const file = await python("env/bin", "0.1.2");
  const pipArguments = ["--proxy", "http://proxy:8080"];
  const expected = { SLIPSTREAM_PIP_ARGUMENTS: JSON.stringify(pipArguments) };
  for (const place of [{ python: file }, { command: ["/opt/slipstream", "serve"] }]) {
    assert.deepEqual((await findServer(places({ ...place, pipArguments }), noProgress)).environment, expected);
    assert.deepEqual((await findServer(places(place), noProgress)).environment, {});
  }
});

test("a server's process gets its variables beside the editor's environment", async () => {
  const file = await program("bin", "slipstream", 'echo "$SLIPSTREAM_PIP_ARGUMENTS in $PATH"');
  const launch = { command: [file], origin: "a test", environment: { SLIPSTREAM_PIP_ARGUMENTS: "[]" } };
  const { child } = await ServerProcess.start(launch, folder);
  let said = "";
  for await (const data of child.stdout ?? []) {
    said += String(data);
  }
  assert.equal(said, `[] in ${PATH}\n`);
});

test("a stop ends a search while another extension does not answer, and while a program does not", { timeout: 30_000 }, async () => {
  const slow = await program("slow", "python3", "sleep 60");
  const stuck: Partial<SearchOptions>[] = [{ activePython: () => new Promise(() => undefined) }, { python: slow }];
  for (const place of stuck) {
    const controller = new AbortController();
    const found = findServer(places({ ...place, signal: controller.signal }), noProgress);
    controller.abort(new Error("stopped"));
    await assert.rejects(found, /stopped/);
  }
});

test("windows that share an engine say so to every server that was found", async () => {
  const file = await python("env/bin", "0.1.2");
  const onPath = await program("bin", "slipstream", "echo slipstream 0.1.0");
  process.env.PATH = path.dirname(onPath);
  const found = await findServer(places({ isShared: true, python: file }), noProgress);
  assert.deepEqual(found.command, [file, "-P", "-m", "lsp_server", "--shared"]);
  const other = await findServer(places({ isShared: true }), noProgress);
  assert.deepEqual(other.command, [onPath, "serve", "--stdio", "--shared"]);
  const command = ["/opt/slipstream", "serve"];
  assert.deepEqual((await findServer(places({ isShared: true, command }), noProgress)).command, command);
});

test("a server of another series is skipped for the one on the PATH", async () => {
  const file = await python("env/bin", "0.2.0");
  const onPath = await program("bin", "slipstream", "echo slipstream 0.1.0");
  process.env.PATH = path.dirname(onPath);
  const launch = await findServer(places({ activePython: () => Promise.resolve(file) }), noProgress);
  assert.deepEqual(launch.command, [onPath, "serve", "--stdio"]);
});

test("an untrusted workspace's interpreter is not asked, and programs in it are not run", async () => {
  const inside = await program("workspace/bin", "slipstream", "echo slipstream 0.1.0");
  const file = await python("workspace/env", "0.1.0");
  process.env.PATH = path.dirname(inside);
  const untrusted = places({ isTrusted: false, python: file, activePython: () => assert.fail("it was asked") });
  await assert.rejects(findServer(untrusted, noProgress), /does not contain the server/);
});

test("a link from elsewhere into an untrusted workspace is seen through", async () => {
  const inside = await program("workspace/bin", "slipstream", "echo slipstream 0.1.0");
  await mkdir(path.join(folder, "bin"));
  await symlink(inside, path.join(folder, "bin", "slipstream"));
  const environment = { PATH: path.join(folder, "bin") };
  assert.equal(await findProgram("slipstream", [path.join(folder, "workspace")], environment), undefined);
  assert.notEqual(await findProgram("slipstream", [], environment), undefined);
});

test("a named interpreter that is too old is an error that names the setting", async () => {
  const file = await python("old", null, [3, 9]);
  await assert.rejects(interpreters(places({ python: file })), (error) => {
    assert.ok(error instanceof SetupError);
    assert.match(error.message, /is Python 3\.9/);
    assert.match(error.advice, /slipstream\.server\.python/);
    return true;
  });
});

async function bundle(): Promise<string> {
  const server = path.join(folder, "server");
  await mkdir(server);
  await writeFile(path.join(server, "slipstream_completion-0.1.0-py3-none-any.whl"), "not a wheel");
  const supply = path.join(root, "scripts", "install.py");
  await copyFile(supply, path.join(server, "install.py"));
  for (const name of ["requirements.lock", "requirements-torch.lock"]) {
    await copyFile(path.join(root, name), path.join(server, name));
  }
  return server;
}

async function options(signal: AbortSignal, found = interpreters(places())): Promise<Parameters<typeof setUp>[0]> {
  const brought = await readBundle(await bundle());
  assert.ok(brought);
  return {
    root: path.join(folder, "environments"),
    bundle: brought,
    pipArguments: ["--no-index"],
    interpreters: () => found,
    report: () => undefined,
    log: () => undefined,
    signal,
  };
}

test("what pip cannot install is an error with its last words, and nothing half-made stays", { timeout: 120_000 }, async () => {
  const setup = await options(new AbortController().signal);
  await assert.rejects(setUp(setup), /pip could not install the server/);
  assert.deepEqual(await readdir(setup.root), []);
  assert.equal(await existing(setup.root, setup.bundle), undefined);
});

test("a set-up that is cancelled ends at once and leaves nothing", { timeout: 120_000 }, async () => {
  const controller = new AbortController();
  const slow = await python("slow", null);
  await program("slow", "python3", "sleep 60");
  const setup = await options(controller.signal, Promise.resolve([{ executable: slow, python: [3, 12], server: undefined }]));
  setTimeout(() => { controller.abort(); }, 300);
  await assert.rejects(setUp(setup), CancelledSetup);
  assert.deepEqual(await readdir(setup.root), []);
});

test("a set-up that is cancelled while it looks for Python asks no further interpreter", async () => {
  const brought = await bundle();
  await program("bin", "python3.14", `echo asked > '${folder}/asked'`);
  process.env.PATH = path.join(folder, "bin");
  const controller = new AbortController();
  const cancelled = findServer(places({ bundle: brought }), (work) =>
    work((step) => {
      if (step === "looking for Python") {
        controller.abort();
      }
    }, controller.signal),
  );
  await assert.rejects(cancelled, CancelledSetup);
  assert.ok(!(await readdir(folder)).includes("asked"));
});

/** A Python whose environments have a pip that says `words` and fails; with none it installs. */
async function installer(name: string, words: string): Promise<Interpreter> {
  const pip = words === "" ? "exit 0" : `echo '${words}'; exit 1`;
  const inner = `#!/bin/sh\necho ${name} >> '${folder}/asked'\n${pip}\n`;
  const script = `for venv; do :; done; mkdir -p "$venv/bin"; printf %s "${inner.replaceAll('"', '\\"')}" > "$venv/bin/python"; chmod +x "$venv/bin/python"`;
  return { executable: await program(name, "python3", script), python: [3, 12], server: undefined };
}

async function asked(): Promise<string[]> {
  return [...new Set((await readFile(path.join(folder, "asked"), "utf8")).trim().split("\n"))];
}

test("where pip finds no packages for an interpreter, the next one is tried", async () => {
  const found = [await installer("new", "No matching distribution found for torch"), await installer("old", "")];
  const setup = await options(new AbortController().signal, Promise.resolve(found));
  const { folder: made, python: inside } = await setUp(setup);
  assert.equal(path.dirname(made), setup.root);
  assert.ok(inside.startsWith(made));
  assert.deepEqual(await asked(), ["new", "old"]);
});

test("where no index answers, no other interpreter is tried", async () => {
  const words = "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken";
  const found = [await installer("new", words), await installer("old", "")];
  const setup = await options(new AbortController().signal, Promise.resolve(found));
  await assert.rejects(setUp(setup), /pip could not install the server/);
  assert.deepEqual(await asked(), ["new"]);
});

test("without any Python the error says what to install", async () => {
  const setup = await options(new AbortController().signal, Promise.resolve([]));
  await assert.rejects(setUp(setup), /needs Python 3\.11 to 3\.14/);
});

test("a program that takes too long is ended with its children", { timeout: 60_000 }, async () => {
  // Its output closes when the last child has ended.
  await assert.rejects(run(["sh", "-c", "sleep 600 & sleep 600"], { cwd: folder, timeoutMs: 200 }), /did not answer/);
});

test("pip's lines become steps", () => {
  const steps: [string, string | undefined][] = [
    ["Collecting torch==2.13.0 (from slipstream-completion)", "looking for torch"],
    ["  Downloading torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl (175.6 MB)", "downloading torch (175.6 MB)"],
    ["  Downloading tree_sitter_c_sharp-0.23.1-cp310-abi3.whl (419 kB)", "downloading tree_sitter_c_sharp (419 kB)"],
    ["Installing collected packages: a, b, c", "installing 3 packages"],
    ["Requirement already satisfied: pip", undefined],
  ];
  for (const [line, step] of steps) {
    assert.equal(pipStep(line), step, line);
  }
});

test("a folder holds itself and what is below it", () => {
  assert.ok(isInside("/a/b", "/a/b"));
  assert.ok(isInside("/a/b", "/a/b/c"));
  assert.ok(isInside("/a/b", "/a/b/..c"));
  assert.ok(!isInside("/a/b", "/a/bc"));
  assert.ok(!isInside("/a/b", "/a"));
});
