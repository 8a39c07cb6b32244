// Owns the tests of the lock between windows.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { acquire } from "../src/fileLock";
import { Computer, Followed, type PlayedMachine } from "./playedMachine";
import { temporaryFolder } from "./temporaryFolder";

const { signal } = new AbortController();

async function place(): Promise<string> {
  return path.join(await temporaryFolder(), "lock");
}

function asked(file: string, machine: PlayedMachine, onWait?: () => void): Followed<Awaited<ReturnType<typeof acquire>>> {
  return new Followed(acquire(file, signal, onWait, machine));
}

test("two windows hold it one after the other, and nothing stays", async () => {
  const file = await place();
  const computer = new Computer();
  const [one, other] = [computer.window(), computer.window()];
  const held = await acquire(file, signal, undefined, one);
  let hasWaited = 0;
  const waiting = asked(file, other, () => hasWaited++);
  await other.run(10_000, waiting);
  assert.deepEqual([waiting.isOver, hasWaited], [false, 1]);
  await held.release();
  await other.run(1_000, waiting);
  await (await waiting.promise).release();
  assert.deepEqual(await readdir(path.dirname(file)), []);
});

test("a holder that works is waited for, however long it takes", async () => {
  const file = await place();
  const computer = new Computer();
  const [one, other] = [computer.window(), computer.window()];
  await acquire(file, signal, undefined, one);
  const waiting = asked(file, other);
  const never = new Followed(new Promise(() => undefined));
  void one.sleep(Infinity, signal);
  for (let minutes = 0; minutes < 60; minutes++) {
    await one.run(10_000, never);
    await other.run(10_000, waiting);
  }
  assert.equal(waiting.isOver, false);
});

test("after the computer slept, the holder is still the holder", async () => {
  const file = await place();
  const computer = new Computer();
  const [one, other] = [computer.window(), computer.window()];
  await acquire(file, signal, undefined, one);
  const waiting = asked(file, other);
  for (const machine of [one, other]) {
    machine.sleepThrough(34_000);
  }
  await other.run(20_000, waiting);
  assert.equal(waiting.isOver, false);
});

test("a holder that stands still while others look for half a minute is not waited for", async () => {
  const file = await place();
  const computer = new Computer();
  const [still, other] = [computer.window(), computer.window()];
  const held = await acquire(file, signal, undefined, still);
  const waiting = asked(file, other);
  await other.run(34_000, waiting);
  const lock = await waiting.promise;
  await held.release(); // awake again: the lock is not its own any more
  assert.deepEqual(await readdir(path.dirname(file)), ["lock"]);
  await lock.release();
  assert.deepEqual(await readdir(path.dirname(file)), []);
});

test("a sign of life that is under way when the lock is released does not put it back", async () => {
  const file = await place();
  const machine = new Computer().window();
  let beat = (): Promise<void> => Promise.resolve();
  machine.every = (_ms, work) => {
    beat = work;
    return () => undefined;
  };
  const held = await acquire(file, signal, undefined, machine);
  await Promise.all([beat(), held.release()]);
  assert.deepEqual(await readdir(path.dirname(file)), []);
});

test("a holder that has ended is not waited for", async () => {
  const file = await place();
  const computer = new Computer();
  const [dead, other] = [computer.window(), computer.window()];
  await acquire(file, signal, undefined, dead);
  dead.end();
  const waiting = asked(file, other);
  await other.run(1_000, waiting);
  assert.equal(waiting.isOver, true);
});

test("a holder on another machine is not judged by this one's processes", async () => {
  const file = await place();
  const [elsewhere, here] = [new Computer("elsewhere").window(), new Computer("here").window()];
  await acquire(file, signal, undefined, elsewhere);
  here.end();
  const waiting = asked(file, here);
  await here.run(10_000, waiting);
  assert.equal(waiting.isOver, false);
});

test("waiting ends when it is cancelled", async () => {
  const file = await place();
  const lock = await acquire(file, signal);
  await assert.rejects(acquire(file, AbortSignal.timeout(50)));
  await lock.release();
});
