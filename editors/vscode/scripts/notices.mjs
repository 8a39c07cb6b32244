// Owns the notices: name, version and licence of each package whose code is in the bundles.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

const IN_PACKAGE = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;

/** The text for people, from what esbuild says of its bundles; fails where a package brings no licence. */
export function notices(root, metafiles) {
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs));
  const folders = new Set(inputs.flatMap((input) => IN_PACKAGE.exec(input) ?? []));
  return [...folders].sort().map((folder) => notice(path.join(root, folder))).join("\n");
}

function notice(folder) {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
  if (file === undefined) {
    throw new Error(`${name} is bundled but brings no licence.`);
  }
  const text = readFileSync(path.join(folder, file), "utf8").replaceAll("\r\n", "\n").trim();
  return `${name} ${version} (${license})\n\n${text}\n\n${"-".repeat(80)}\n`;
}
