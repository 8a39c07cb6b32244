// Owns running other programs to their end, with their output by lines, a time limit and cancellation.
import { spawn, type ChildProcess } from "node:child_process";

/** How a program ended. `output` is its standard output, `lines` the last lines of both streams. */
export interface Outcome {
  readonly code: number | null;
  readonly output: string;
  readonly lines: readonly string[];
}

export interface RunOptions {
  /** Never a workspace folder: Python would import modules from there. */
  readonly cwd: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly onLine?: (line: string) => void;
}

const NUM_LINES = 40;
const MAX_OUTPUT = 1_000_000;

/** Run `command` and wait for its end. Rejects if it cannot start, runs too long or is cancelled. */
export async function run(command: readonly string[], options: RunOptions): Promise<Outcome> {
  const [program, ...args] = command;
  if (program === undefined) {
    throw new Error("The command is empty.");
  }
  options.signal?.throwIfAborted();
  // A process group of its own, so that pip's children end with it.
  const child = spawn(program, args, {
    cwd: options.cwd,
    stdio: ["ignore", "pipe", "pipe"],
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const onAbort = (): void => {
    endWithChildren(child);
  };
  options.signal?.addEventListener("abort", onAbort);
  const timer = options.timeoutMs === undefined ? undefined : setTimeout(onAbort, options.timeoutMs);
  const started = performance.now();
  try {
    const outcome = await ended(child, options.onLine);
    options.signal?.throwIfAborted();
    if (options.timeoutMs !== undefined && performance.now() - started >= options.timeoutMs) {
      throw new Error(`${program} did not answer within ${options.timeoutMs / 1000} seconds.`);
    }
    return outcome;
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", onAbort);
  }
}

function ended(child: ChildProcess, onLine: ((line: string) => void) | undefined): Promise<Outcome> {
  let output = "";
  const lines: string[] = [];
  const take = (line: string): void => {
    lines.push(line);
    lines.splice(0, lines.length - NUM_LINES);
    onLine?.(line);
  };
  child.stdout?.on("data", (data: Buffer) => {
    output = (output + data.toString()).slice(0, MAX_OUTPUT);
  });
  splitLines(child.stdout, take);
  splitLines(child.stderr, take);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      resolve({ code, output, lines });
    });
  });
}

function splitLines(stream: NodeJS.ReadableStream | null, take: (line: string) => void): void {
  let rest = "";
  stream?.on("data", (data: Buffer) => {
    const parts = (rest + data.toString()).split(/\r\n|\n|\r/);
    rest = parts.pop() ?? "";
    parts.filter((line) => line.trim() !== "").forEach(take);
  });
  stream?.on("end", () => {
    if (rest.trim() !== "") {
      take(rest);
    }
  });
}

function endWithChildren(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) {
    return;
  }
  try {
    if (process.platform === "win32") {
      spawn("taskkill", ["/pid", String(child.pid), "/T", "/F"], { stdio: "ignore", windowsHide: true });
    } else {
      process.kill(-child.pid, "SIGKILL");
    }
  } catch {
    child.kill();
  }
}
