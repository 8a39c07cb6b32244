// Owns taking away what the extension's own server stored and where it is installed. Must not know the editor.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { all } from "./managed";
import { type Outcome, run } from "./processes";

const CODE = ["-P", "-c"] as const;
const CHECK = [...CODE, "import lsp_server.cli"] as const;
const UNINSTALL = [...CODE, "from lsp_server.cli import main; main()", "uninstall", "--yes"] as const;
const CHECK_MS = 60_000;
const TIMEOUT_MS = 120_000;

/** What was removed: all, the environments alone as none of them runs, or nothing as there were none. */
export type Removed = "all" | "environments" | "nothing";

/**
 * Have a server in one of our own environments remove all it stored, then remove the environments. Without such a
 * server there is nothing that we may run; what another installation stored is that one's. Rejects with the server's
 * own words where something stays.
 */
export async function removeEverything(storage: string, log: (line: string) => void): Promise<Removed> {
  const root = path.join(storage, "environments");
  const found = await all(root);
  const python = await firstThatRuns(found, storage, log);
  if (python !== undefined) {
    const done = await run([python, ...UNINSTALL], { cwd: storage, timeoutMs: TIMEOUT_MS, onLine: log });
    if (done.code !== 0) {
      throw new Error(done.lines.slice(-2).join(" ").trim());
    }
  }
  await rm(root, { recursive: true, force: true, maxRetries: 3 });
  return python !== undefined ? "all" : found.length > 0 ? "environments" : "nothing";
}

async function firstThatRuns(
  pythons: readonly string[],
  cwd: string,
  log: (line: string) => void,
): Promise<string | undefined> {
  for (const python of pythons) {
    const options = { cwd, timeoutMs: CHECK_MS, onLine: log };
    const done = await run([python, ...CHECK], options).catch((error: unknown): Outcome => {
      log(String(error));
      return { code: null, output: "", lines: [] };
    });
    if (done.code === 0) {
      return python;
    }
  }
  return undefined;
}

/** Why there is no server in a window that obeys. */
export const REMOVED = "Everything was removed. Restart the server to set it up again.";

/** The sentences that tell the user what was removed. */
export const TOLD: Readonly<Record<Removed, string>> = {
  all: "All is removed. Now uninstall the extension.",
  environments:
    "The extension's own server is removed. It could not be run any more, so its models, indexes, logs and settings stay: `slipstream uninstall` of any other installation removes them.",
  nothing:
    "The extension had set up no server, so nothing was removed. One that you installed yourself has `slipstream uninstall`.",
};

/**
 * The word to all windows that everything is being removed: a file with a new text each time. Windows that were there
 * before obey it. Those that start later know its text already, so that an extension that is installed anew works.
 */
export class RemovalWord {
  static readonly NAME = "removed";
  private readonly file: string;
  private known: string;

  constructor(private readonly storage: string) {
    this.file = path.join(storage, RemovalWord.NAME);
    this.known = this.read();
  }

  /** Whether it was said since this window started, or since it was last forgotten. */
  get isSaid(): boolean {
    return this.read() !== this.known;
  }

  async say(): Promise<void> {
    await mkdir(this.storage, { recursive: true });
    await writeFile(this.file, randomUUID());
  }

  /** The user wants a server again, in this window. */
  forget(): void {
    this.known = this.read();
  }

  private read(): string {
    try {
      return readFileSync(this.file, "utf8");
    } catch {
      return "";
    }
  }
}
