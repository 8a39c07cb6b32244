// Owns the tests of restarting after a crash.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Crashes, LONGEST_WAIT_MS } from "../src/serverLifecycle";

const MINUTE = 60_000;

function waits(times: readonly number[]): (number | undefined)[] {
  const crashes = new Crashes();
  return times.map((time) => crashes.add(time));
}

test("crashes in a row wait 1, 2, 4 and 8 seconds, and the fifth within three minutes gives up", () => {
  assert.deepEqual(waits([0, 2, 5, 10, 20].map((s) => s * 1000)), [1000, 2000, 4000, 8000, undefined]);
});

test("crashes a minute apart go on, and never wait longer than half a minute", () => {
  const found = waits(Array.from({ length: 12 }, (_, index) => index * MINUTE));
  assert.deepEqual(found.slice(0, 6), [1000, 2000, 4000, 8000, 16_000, LONGEST_WAIT_MS]);
  assert.equal(Math.max(...found.map((wait) => wait ?? Infinity)), LONGEST_WAIT_MS);
});

test("a crash long after the last one waits as the first", () => {
  assert.deepEqual(waits([0, 1000, 20 * MINUTE]), [1000, 2000, 1000]);
});

test("a restart by the user forgets all crashes", () => {
  const crashes = new Crashes();
  [0, 1, 2, 3].forEach((time) => crashes.add(time));
  crashes.clear();
  assert.equal(crashes.add(4), 1000);
});
