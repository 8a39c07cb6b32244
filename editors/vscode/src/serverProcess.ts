// Owns the server's process: its start, its last output, its end.
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Launch } from "./serverSearch";
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

  /** Rejects with a SetupError if the program cannot start. */
  static async start(launch: Launch, cwd: string): Promise<ServerProcess> {
    const [program = "", ...args] = launch.command;
    const env = { ...process.env, ...launch.environment };
    const child = spawn(program, args, { cwd, env, stdio: "pipe", windowsHide: true });
    const started = new ServerProcess(child);
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error: NodeJS.ErrnoException) => {
        const reason = error.code === "ENOENT" ? "the program does not exist" : error.message;
        const place = path.isAbsolute(program) ? program : `"${program}"`;
        const advice = `Its path comes from ${launch.origin}. Change it, or choose Restart to look for another server.`;
        reject(new SetupError(`The server ${place} could not start: ${reason}.`, advice, ["settings", "retry", "log"]));
      });
    });
    return started;
  }

  /** Read the server's output beside the protocol. Calls `take` with each line. */
  readLines(stream: NodeJS.ReadableStream, take: (line: string) => void): void {
    createInterface({ input: stream, crlfDelay: Infinity }).on("line", (line) => {
      this.lines.push(line);
      this.lines.splice(0, this.lines.length - NUM_LINES);
      take(line);
    });
  }

  /** Its exit code or signal, and its last lines, as a part of a sentence. */
  get lastWords(): string {
    const words = this.lines.join("\n").trim().replace(/\.$/, "");
    return `${this.exit ?? "its streams closed"}${words === "" ? "" : `: ${words}`}`;
  }

  /** End it: by itself within the grace period if it has one, otherwise by force. */
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
