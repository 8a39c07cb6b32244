// Owns the bundles: the extension, the statistics page's script and, with --tests, the unit tests.
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build, context } from "esbuild";
import { notices } from "./notices.mjs";

const root = path.dirname(import.meta.dirname);
const isWatching = process.argv.includes("--watch");
const common = {
  absWorkingDir: root,
  bundle: true,
  sourcemap: isWatching,
  minify: !isWatching,
  legalComments: "none", // they are in the notices
  metafile: true,
  logLevel: "warning",
};
const node = { ...common, platform: "node", target: "node20", format: "cjs", external: ["vscode"] };
const extension = { ...node, entryPoints: ["src/extension.ts"], outfile: "out/extension.js" };
const page = {
  ...common,
  platform: "browser",
  target: "es2022",
  format: "iife",
  entryPoints: ["src/webview/statistics.ts"],
  outfile: "out/statistics.js",
};
const tests = {
  ...node,
  minify: false,
  sourcemap: "inline",
  entryPoints: readdirSync(path.join(root, "test"))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name}`),
  outdir: "out/test",
};

if (process.argv.includes("--tests")) {
  rmSync(path.join(root, "out", "test"), { recursive: true, force: true });
  await build(tests);
} else if (isWatching) {
  await Promise.all([extension, page].map(async (options) => (await context(options)).watch()));
} else {
  const done = await Promise.all([extension, page].map((options) => build(options)));
  const text = notices(root, done.map(({ metafile }) => metafile));
  writeFileSync(path.join(root, "out", "third-party-notices.txt"), text);
}
