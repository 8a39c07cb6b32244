// Owns removing the server that the extension installed, and all files that it stored. Does not import the editor.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { all } from "./environmentSetup";
import { type Outcome, run } from "./processes";

const CODE = ["-P", "-c"] as const;
const CHECK = [...CODE, "import lsp_server.cli"] as const;
const UNINSTALL = [...CODE, "from lsp_server.cli import main; main()", "uninstall", "--yes"] as const;
const CHECK_MS = 60_000;
const TIMEOUT_MS = 120_000;

/** The removed parts: all, only the environments because none of them runs, or nothing because there were none. */
export type Removed = "all" | "environments" | "nothing";

/**
 * Run `uninstall` of a server in one of the extension's environments, then remove the environments. Files of other
 * installations stay. Rejects with the server's last output if it could not remove everything.
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

/** The reason why the server does not run after a removal. */
export const REMOVED = "The server was removed. Restart it to install it again.";

/** What to show after a removal. */
export const REMOVED_SENTENCES: Readonly<Record<Removed, string>> = {
  all: "Slipstream removed everything. Now uninstall the extension.",
  environments:
    "Slipstream removed its server. The server could not run any more, so its models, indexes, logs and settings stay. Another installation removes them with `slipstream uninstall`.",
  nothing:
    "The extension had not installed a server, so nothing was removed. To remove a server that you installed, run `slipstream uninstall`.",
};

/**
 * Notifies all windows of a removal: a file with a new text each time. Open windows stop their server. Windows that open
 * later start with the current text, so that an extension that is installed again works.
 */
export class RemovalMark {
  static readonly NAME = "removed";
  private readonly file: string;
  private known: string;

  constructor(private readonly storage: string) {
    this.file = path.join(storage, RemovalMark.NAME);
    this.known = this.read();
  }

  /** Whether a removal happened since this window opened, or since the last `clear`. */
  get isSet(): boolean {
    return this.read() !== this.known;
  }

  async set(): Promise<void> {
    await mkdir(this.storage, { recursive: true });
    await writeFile(this.file, randomUUID());
  }

  /** Allow the server in this window again. */
  clear(): void {
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
