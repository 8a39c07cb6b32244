// Owns the tests of the server's lifecycle: starts that never end, crashes, and servers that are not wanted any more.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type Connection, type Failure, ServerLifecycle, type ServerPhase } from "../src/serverLifecycle";
import type { Launch } from "../src/serverSearch";

const LAUNCH: Launch = { command: ["slipstream"], origin: "a test", environment: {} };

class PlayedConnection implements Connection {
  killed: string[] = [];
  isClosed = false;
  readonly lastWords = "exit code 1";
  private settle: { resolve: () => void; reject: (error: Error) => void } | undefined;

  constructor(private readonly onEnd: () => void) {}

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  kill(when: "at once" | "soon"): void {
    this.killed.push(when);
  }

  async answer(): Promise<void> {
    this.settle?.resolve();
    await quiet();
  }

  async end(): Promise<void> {
    this.onEnd();
    this.settle?.reject(new Error("the connection closed"));
    await quiet();
  }
}

/** A lifecycle with servers that a test controls, and a time that advances only by the test's command. */
class Play {
  readonly servers: PlayedConnection[] = [];
  readonly phases: ServerPhase[] = [];
  readonly failures: Failure[] = [];
  readonly discarded: Launch[] = [];
  reason: string | undefined;
  find: () => Promise<Launch> = () => Promise.resolve(LAUNCH);
  readonly life: ServerLifecycle<PlayedConnection>;
  private time = 0;
  private timers: { at: number; work: () => void }[] = [];

  constructor() {
    this.life = new ServerLifecycle<PlayedConnection>({
      unwanted: () => this.reason,
      find: () => this.find(),
      connect: (_launch, onEnd) => {
        this.servers.push(new PlayedConnection(onEnd));
        return Promise.resolve(this.last);
      },
      discard: (launch) => {
        this.discarded.push(launch);
        return Promise.resolve(true);
      },
      changed: (phase) => this.phases.push(phase),
      failed: (failure) => this.failures.push(failure),
      log: () => undefined,
      after: (ms, work) => {
        const timer = { at: this.time + ms, work };
        this.timers.push(timer);
        return () => {
          this.timers = this.timers.filter((other) => other !== timer);
        };
      },
      now: () => this.time,
    });
  }

  get last(): PlayedConnection {
    const last = this.servers.at(-1);
    assert.ok(last);
    return last;
  }

  get phase(): string {
    return this.life.current.phase;
  }

  async begin(): Promise<void> {
    void this.life.start();
    await quiet();
  }

  /** Let a minute go by, timer by timer. */
  async wait(): Promise<void> {
    const end = this.time + 60_000;
    for (;;) {
      const [next, ...later] = this.timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (next === undefined) {
        return;
      }
      this.timers = [...later, ...this.timers.filter(({ at }) => at > end)];
      this.time = next.at;
      next.work();
      await quiet();
    }
  }
}

/** Until nothing is left to do that waits for no time. */
async function quiet(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) {
    await turn();
  }
}

// Otherwise a failing test would wait without an end.
const isBounded = { timeout: 30_000 };

const never = (): Promise<Launch> => new Promise(() => undefined);

test("a restart ends a server that never answers, and starts another", isBounded, async () => {
  const play = new Play();
  await play.begin();
  const [first] = play.servers;
  const restarted = play.life.restart();
  await quiet();
  assert.deepEqual(first?.killed, ["at once"]);
  await play.last.answer();
  await restarted;
  assert.equal(play.servers.length, 2);
  assert.equal(play.phase, "loading");
});

test("of several restarts in a row the last one starts", async () => {
  const play = new Play();
  await play.begin();
  void play.life.restart();
  void play.life.restart();
  await quiet();
  assert.equal(play.servers.length, 2);
  assert.equal(play.phase, "starting");
});

test("a stop waits for no search and for no start that never ends", isBounded, async () => {
  for (const find of [never, (): Promise<Launch> => Promise.resolve(LAUNCH)]) {
    const play = new Play();
    play.find = find;
    await play.begin();
    await play.life.stop();
    assert.equal(play.phase, "off");
    assert.deepEqual(play.failures, []);
    await play.wait();
    assert.equal(play.phase, "off");
  }
});

test("a server that answered is ended in good order", async () => {
  const play = new Play();
  await play.begin();
  await play.last.answer();
  await play.life.stop("Everything was removed.");
  assert.equal(play.last.isClosed, true);
  assert.deepEqual(play.life.current, { phase: "off", message: "Everything was removed." });
});

test("a server that ends by itself is restarted", async () => {
  const play = new Play();
  await play.begin();
  await play.last.answer();
  await play.last.end();
  assert.equal(play.phase, "waiting");
  await play.wait();
  assert.equal(play.servers.length, 2);
});

test("a server that ends when it is not wanted any more stays away, and the phase has the reason", async () => {
  const play = new Play();
  await play.begin();
  await play.last.answer();
  play.reason = "Everything was removed.";
  await play.last.end();
  await play.wait();
  assert.equal(play.servers.length, 1);
  assert.deepEqual(play.life.current, { phase: "off", message: "Everything was removed." });
});

test("a crash just before a stop starts nothing behind it", async () => {
  const play = new Play();
  await play.begin();
  await play.last.answer();
  const stopped = play.life.stop();
  void play.last.end();
  await stopped;
  await play.wait();
  assert.equal(play.servers.length, 1);
  assert.equal(play.phase, "off");
});

async function endUntilGivenUp(play: Play, answers: boolean): Promise<void> {
  await play.begin();
  for (let num = 1; num <= 5; num++) {
    assert.equal(play.servers.length, num);
    assert.deepEqual(play.failures, []);
    if (answers) {
      await play.last.answer();
    }
    await play.last.end();
    await play.wait();
  }
}

test("a server that crashes repeatedly before its first answer is replaced by a new installation", async () => {
  const play = new Play();
  await endUntilGivenUp(play, false);
  assert.equal(play.servers.length, 5);
  assert.deepEqual(play.discarded, [LAUNCH]);
  assert.match(play.failures[0]?.message ?? "", /A restart installs it again/);
});

test("a server that crashes repeatedly after its first answer keeps its installation", async () => {
  const play = new Play();
  await endUntilGivenUp(play, true);
  assert.deepEqual(play.discarded, []);
  assert.match(play.failures[0]?.message ?? "", /crashed repeatedly \(exit code 1\)/);
});
