// Owns the tests of what is taken away, with a script in place of the server's interpreter.
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { removeEverything } from "../src/removal";

async function played(code: number): Promise<{ readonly storage: string; readonly python: string; readonly said: string[] }> {
  const storage = await mkdtemp(path.join(os.tmpdir(), "slipstream-"));
  const folder = path.join(storage, "environments", "one");
  await mkdir(folder, { recursive: true });
  const python = path.join(folder, "python");
  await writeFile(python, `#!/bin/sh\necho "$*" > "${storage}/called"\necho "it says"\nexit ${code}\n`);
  await chmod(python, 0o755);
  return { storage, python, said: [] };
}

const isPosix = { skip: process.platform === "win32" };

test("the server removes what it stored, then its environment goes", isPosix, async () => {
  const { storage, python, said } = await played(0);
  await removeEverything(storage, python, (line) => said.push(line));
  assert.deepEqual(await readdir(storage), ["called"]);
  assert.match(await readFile(path.join(storage, "called"), "utf8"), /uninstall --yes/);
  assert.deepEqual(said, ["it says"]);
  await rm(storage, { recursive: true });
});

test("where the server cannot remove something its environment stays, and its words are told", isPosix, async () => {
  const { storage, python } = await played(1);
  await assert.rejects(removeEverything(storage, python, () => undefined), /it says/);
  assert.ok((await readdir(storage)).includes("environments"));
  await rm(storage, { recursive: true });
});

test("what another installation stored is left to it", async () => {
  const { storage } = await played(0);
  await removeEverything(storage, undefined, () => undefined);
  assert.deepEqual(await readdir(storage), []);
  await rm(storage, { recursive: true });
});
