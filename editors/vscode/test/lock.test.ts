// Owns the tests of the lock between windows.
import assert from "node:assert/strict";
import { mkdtemp, readdir, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { acquire } from "../src/lock";

async function place(): Promise<string> {
  return path.join(await mkdtemp(path.join(tmpdir(), "slipstream-lock-")), "lock");
}

test("two windows hold it one after the other", async () => {
  const file = await place();
  const { signal } = new AbortController();
  const order: string[] = [];
  const first = await acquire(file, signal);
  const second = acquire(file, signal, () => order.push("waits")).then(async (lock) => {
    order.push("second");
    await lock.release();
  });
  setTimeout(() => {
    order.push("first");
    void first.release();
  }, 200);
  await second;
  assert.deepEqual(order, ["waits", "first", "second"]);
  assert.deepEqual(await readdir(path.dirname(file)), []);
});

test("one that a dead window left is taken over", async () => {
  const file = await place();
  await writeFile(file, "somebody");
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(file, longAgo, longAgo);
  const lock = await acquire(file, AbortSignal.timeout(5_000));
  await lock.release();
});

test("waiting ends when it is cancelled", async () => {
  const file = await place();
  const lock = await acquire(file, new AbortController().signal);
  await assert.rejects(acquire(file, AbortSignal.timeout(50)));
  await lock.release();
});
