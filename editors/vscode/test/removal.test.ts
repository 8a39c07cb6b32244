// Owns the tests of removing everything, with scripts in place of interpreters, and of its mark for all windows.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { beforeEach, test } from "node:test";
import { RemovalMark, removeEverything } from "../src/removal";
import { temporaryFolder } from "./temporaryFolder";

let storage = "";

beforeEach(async () => {
  storage = await temporaryFolder();
});

/** An environment whose interpreter runs a script; `$*` are its arguments. */
async function environment(digit: string, script: string): Promise<void> {
  const bin = path.join(storage, "environments", digit.repeat(16), "venv", "bin");
  await mkdir(bin, { recursive: true });
  const python = path.join(bin, "python");
  await writeFile(python, `#!/bin/sh\n${script}\n`);
  await chmod(python, 0o755);
}

/** A server that runs, and whose `uninstall` ends with `code`. */
async function server(code: number): Promise<void> {
  const uninstall = `echo "$*" > "${storage}/called"; echo "it says"; exit ${code}`;
  await environment("b", `case "$*" in *uninstall*) ${uninstall};; esac`);
}

const broken = "echo \"No module named 'lsp_server'\"; exit 1";
const isPosix = { skip: process.platform === "win32" };

test("the server removes what it stored, then its environment goes", isPosix, async () => {
  const said: string[] = [];
  await server(0);
  assert.equal(await removeEverything(storage, (line) => said.push(line)), "all");
  assert.deepEqual(await readdir(storage), ["called"]);
  assert.match(await readFile(path.join(storage, "called"), "utf8"), /uninstall --yes/);
  assert.deepEqual(said, ["it says"]);
});

test("if the server cannot remove something, its environment stays and the error has its output", isPosix, async () => {
  await server(1);
  await assert.rejects(removeEverything(storage, () => undefined), /it says/);
  assert.ok((await readdir(storage)).includes("environments"));
});

test("an environment that does not run any more is removed, and what it stored is said to stay", isPosix, async () => {
  await environment("a", broken);
  await mkdir(path.join(storage, "environments", "c".repeat(16)), { recursive: true });
  assert.equal(await removeEverything(storage, () => undefined), "environments");
  assert.deepEqual(await readdir(storage), []);
});

test("any environment that runs removes what was stored, though others do not", isPosix, async () => {
  await environment("a", broken);
  await server(0);
  assert.equal(await removeEverything(storage, () => undefined), "all");
  assert.deepEqual(await readdir(storage), ["called"]);
});

test("if the extension installed nothing, nothing counts as removed", async () => {
  assert.equal(await removeEverything(storage, () => undefined), "nothing");
});

test("open windows notice a removal, and those that open later do not", async () => {
  const [one, other] = [new RemovalMark(storage), new RemovalMark(storage)];
  assert.equal(other.isSet, false);
  await one.set();
  assert.deepEqual([one.isSet, other.isSet], [true, true]);
  const later = new RemovalMark(storage);
  assert.equal(later.isSet, false);
  await one.set();
  assert.equal(later.isSet, true);
});

test("a window whose user restarts the server notices only the next removal", async () => {
  const [one, other] = [new RemovalMark(storage), new RemovalMark(storage)];
  await one.set();
  other.clear();
  assert.deepEqual([one.isSet, other.isSet], [true, false]);
  await one.set();
  assert.equal(other.isSet, true);
});
