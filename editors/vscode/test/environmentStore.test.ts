// Owns the tests of building, publishing and removing environments between windows that stop at any moment.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { EnvironmentStore, unpublish } from "../src/environmentStore";
import { Computer, Followed, type PlayedMachine } from "./playedMachine";
import { temporaryFolder } from "./temporaryFolder";

const NOW = "0123456789abcdef";
const LATER = "fedcba9876543210";
const HOUR_MS = 60 * 60 * 1000;
const { signal } = new AbortController();

/** A window that builds its environment, and waits for the test before each step. */
class Builder {
  readonly done: Followed<string>;
  readonly begun: Followed<void>;
  private readonly goOn: Promise<void>;
  private begin: () => void = () => undefined;
  private finish: () => void = () => undefined;

  constructor(root: string, machine: PlayedMachine, fingerprint = NOW) {
    this.begun = new Followed(
      new Promise<void>((resolve) => {
        this.begin = resolve;
      }),
    );
    this.goOn = new Promise((resolve) => {
      this.finish = resolve;
    });
    const build = async (folder: string): Promise<void> => {
      await writeFile(path.join(folder, "first"), "half");
      this.begin();
      await this.goOn;
      await writeFile(path.join(folder, "second"), await readFile(path.join(folder, "first")));
    };
    const wanted = { fingerprint, build, isUsable: isWhole, onWait: () => undefined, signal };
    this.done = new Followed(new EnvironmentStore(root, machine).make(wanted));
  }

  async end(): Promise<string> {
    this.finish();
    return this.done.promise;
  }
}

async function isWhole(folder: string): Promise<boolean> {
  return (await readFile(path.join(folder, "second"), "utf8").catch(() => "")) === "half";
}

test("a window that stood still for 34 seconds and one that took its place leave each other's work alone", async () => {
  const root = await temporaryFolder();
  const computer = new Computer();
  const [still, other] = [computer.window(), computer.window()];
  const first = new Builder(root, still);
  await first.begun.promise;
  const second = new Builder(root, other);
  await other.run(34_000, second.begun);
  assert.ok(second.begun.isOver);
  const made = await second.end();
  assert.equal(await isWhole(made), true);
  assert.equal(await first.end(), made, "who comes second takes what the first one published");
  assert.equal(await isWhole(made), true);
  assert.deepEqual(await readdir(root), [path.basename(made)]);
});

test("the one that stood still may be first at the end", async () => {
  const root = await temporaryFolder();
  const computer = new Computer();
  const [still, other] = [computer.window(), computer.window()];
  const first = new Builder(root, still);
  await first.begun.promise;
  const second = new Builder(root, other);
  await other.run(34_000, second.begun);
  assert.ok(second.begun.isOver);
  const made = await first.end();
  assert.equal(await second.end(), made);
  assert.equal(await isWhole(made), true);
});

test("nothing that is half built is ever found", async () => {
  const root = await temporaryFolder();
  const computer = new Computer();
  const builder = new Builder(root, computer.window());
  await builder.begun.promise;
  const seeker = new EnvironmentStore(root, computer.window());
  assert.equal(await seeker.find(NOW, () => Promise.resolve(true)), undefined);
  assert.equal(await seeker.find(NOW, () => Promise.resolve(true)), undefined);
  assert.equal(await builder.end(), await seeker.find(NOW, isWhole));
});

/** The rest of `first` after another window set up the next version `hours` later. */
async function afterwards(
  hours: number,
  from: (root: string, window: PlayedMachine) => Promise<void>,
  first = new Computer().window(),
): Promise<string[]> {
  const root = await temporaryFolder();
  await from(root, first);
  const later = new Computer().window();
  later.sleepThrough(hours * HOUR_MS);
  const builder = new Builder(root, later, LATER);
  await builder.end();
  return (await readdir(root)).filter((name) => name.startsWith(NOW));
}

async function build(root: string, window: PlayedMachine): Promise<void> {
  await new Builder(root, window).end();
  window.end();
}

async function buildHalf(root: string, window: PlayedMachine): Promise<void> {
  await new Builder(root, window).begun.promise;
  await rm(path.join(root, "lock"));
}

test("what nobody used for a week is removed, and not before", async () => {
  assert.equal((await afterwards(6 * 24, build)).length, 1);
  assert.equal((await afterwards(8 * 24, build)).length, 0);
});

test("what a dead window half built is removed after a day, and not before", async () => {
  const dead = async (root: string, window: PlayedMachine): Promise<void> => {
    await buildHalf(root, window);
    window.end();
  };
  assert.equal((await afterwards(23, dead)).length, 1);
  assert.equal((await afterwards(25, dead)).length, 0);
});

test("what a window that lives built or uses is never removed", async () => {
  const root = await temporaryFolder();
  const computer = new Computer();
  const [user, builder, later] = [computer.window(), computer.window(), computer.window()];
  const used = await new Builder(root, user).end();
  const half = new Builder(root, builder, "aaaaaaaaaaaaaaaa");
  await half.begun.promise;
  await rm(path.join(root, "lock"));
  later.sleepThrough(365 * 24 * HOUR_MS);
  await new Builder(root, later, LATER).end();
  assert.equal(await isWhole(used), true);
  assert.equal(await isWhole(await half.end()), true);
});

test("using it anew keeps it for another week", async () => {
  const left = await afterwards(8 * 24, async (root, window) => {
    await build(root, window);
    const again = new Computer().window();
    again.sleepThrough(5 * 24 * HOUR_MS);
    assert.ok(await new EnvironmentStore(root, again).find(NOW, isWhole));
    again.end();
  });
  assert.equal(left.length, 1);
});

test("other files in the folder are nobody's to remove", async () => {
  const root = await temporaryFolder();
  await mkdir(path.join(root, "mine"));
  const later = new Computer().window();
  later.sleepThrough(365 * 24 * HOUR_MS);
  await new Builder(root, later).end();
  assert.ok((await readdir(root)).includes("mine"));
});

test("what fails leaves nothing, and the next one builds", async () => {
  const root = await temporaryFolder();
  const computer = new Computer();
  const failing = {
    fingerprint: NOW,
    build: () => Promise.reject(new Error("no network")),
    isUsable: isWhole,
    onWait: () => undefined,
    signal,
  };
  await assert.rejects(new EnvironmentStore(root, computer.window()).make(failing), /no network/);
  assert.deepEqual(await readdir(root), []);
  assert.equal(await isWhole(await new Builder(root, computer.window()).end()), true);
});

test("one that does not run any more is not in the way of a new one", async () => {
  const root = await temporaryFolder();
  const computer = new Computer();
  const broken = await new Builder(root, computer.window()).end();
  await rm(path.join(broken, "second"));
  const made = await new Builder(root, computer.window()).end();
  assert.notEqual(made, broken);
  assert.equal(await isWhole(made), true);
});

test("one that is left by its user is not found again, and whoever runs from it goes on", async () => {
  const root = await temporaryFolder();
  const computer = new Computer();
  const [leaving, running] = [computer.window(), computer.window()];
  const left = await new Builder(root, leaving).end();
  assert.equal(await new EnvironmentStore(root, running).find(NOW, isWhole), left);
  await unpublish(left);
  assert.equal(await new EnvironmentStore(root, leaving).find(NOW, isWhole), undefined);
  assert.notEqual(await new Builder(root, leaving).end(), left);
  assert.equal(await isWhole(left), true);
});
