// Owns the package: builds the server's wheel from this repository, bundles it, and makes slipstream-VERSION.vsix.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { createVSIX } from "@vscode/vsce";

const root = path.dirname(import.meta.dirname);
const repository = path.resolve(root, "..", "..");
const server = path.join(root, "server");
const { name, version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));

// PYTHON names another interpreter; any with pip will do, the build's own tools are fetched by pip.
const ofRepository = path.join(repository, ".venv", process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
const python = process.env.PYTHON ?? (existsSync(ofRepository) ? ofRepository : "python3");

function run(command, ...args) {
  execFileSync(command, args, { cwd: root, stdio: "inherit" });
}

rmSync(server, { recursive: true, force: true });
mkdirSync(server);
run(python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", "--wheel-dir", server, repository);
copyFileSync(path.join(repository, "constraints.txt"), path.join(server, "constraints.txt"));
copyFileSync(path.join(repository, "LICENSE"), path.join(root, "LICENSE"));
run(process.execPath, "scripts/build.mjs");

const vsix = path.join(root, `${name}-${version}.vsix`);
await createVSIX({ cwd: root, packagePath: vsix, dependencies: false, allowMissingRepository: true });
