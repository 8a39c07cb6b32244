// Owns taking away what the extension's own server stored and where it is installed. Must not know the editor.
import { rm } from "node:fs/promises";
import path from "node:path";
import { run } from "./processes";

const UNINSTALL = ["-P", "-c", "from lsp_server.cli import main; main()", "uninstall", "--yes"] as const;
const TIMEOUT_MS = 120_000;

/**
 * Have the server in our own environment remove all it stored, then remove the environments. Without such an
 * environment there is nothing that we may run; what another installation stored is that one's. Rejects with the
 * server's own words where something stays.
 */
export async function removeEverything(
  storage: string,
  python: string | undefined,
  log: (line: string) => void,
): Promise<void> {
  if (python !== undefined) {
    const done = await run([python, ...UNINSTALL], { cwd: storage, timeoutMs: TIMEOUT_MS, onLine: log });
    if (done.code !== 0) {
      throw new Error(done.lines.slice(-2).join(" ").trim());
    }
  }
  await rm(path.join(storage, "environments"), { recursive: true, force: true, maxRetries: 3 });
}
