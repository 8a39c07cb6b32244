// Owns the folders that tests write into: all of them go when the tests of a file have ended.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";

const made: string[] = [];

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "slipstream-"));
  made.push(folder);
  return folder;
}

after(async () => {
  await Promise.all(made.map((folder) => rm(folder, { recursive: true, force: true })));
});
