// Owns the server's process: its start, its last words, its end.
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Launch } from "./search";
import { SetupError } from "./setupError";

const NUM_LINES = 6;
const GRACE_MS = 2_000;

export class ServerProcess {
  private readonly lines: string[] = [];
  private exit: string | undefined;

  private constructor(readonly child: ChildProcess) {
    child.once("exit", (code, signal) => {
      this.exit = signal === null ? `exit code ${code ?? "unknown"}` : `signal ${signal}`;
    });
  }

  /** Rejects with a SetupError when the program cannot be started. */
  static async start(launch: Launch, cwd: string): Promise<ServerProcess> {
    const [program = "", ...args] = launch.command;
    const env = { ...process.env, ...launch.environment };
    const child = spawn(program, args, { cwd, env, stdio: "pipe", windowsHide: true });
    const started = new ServerProcess(child);
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error: NodeJS.ErrnoException) => {
        const reason = error.code === "ENOENT" ? "there is no such program" : error.message;
        const place = path.isAbsolute(program) ? program : `"${program}"`;
        const advice = `It comes from ${launch.origin}.`;
        reject(new SetupError(`${place} cannot be started: ${reason}.`, advice, ["settings", "retry", "log"]));
      });
    });
    return started;
  }

  /** Read what the server says beside the protocol; `take` gets each line. */
  readLines(stream: NodeJS.ReadableStream, take: (line: string) => void): void {
    createInterface({ input: stream, crlfDelay: Infinity }).on("line", (line) => {
      this.lines.push(line);
      this.lines.splice(0, this.lines.length - NUM_LINES);
      take(line);
    });
  }

  /** How it ended and what it said last, in words. */
  get lastWords(): string {
    const words = this.lines.join("\n").trim();
    return `${this.exit ?? "its streams closed"}${words === "" ? "" : `: ${words}`}`;
  }

  /** Make sure that it goes: on its own within the grace, if it is given one, or else by force. */
  end(hasGrace = true): void {
    if (this.exit !== undefined) {
      return;
    }
    if (!hasGrace) {
      this.child.kill("SIGKILL");
      return;
    }
    const timer = setTimeout(() => this.child.kill("SIGKILL"), GRACE_MS);
    this.child.once("exit", () => {
      clearTimeout(timer);
    });
  }
}
