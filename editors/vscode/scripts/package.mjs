// Owns the package: builds the server's wheel from this repository, bundles it, and makes slipstream-VERSION.vsix.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
// The tools that build the wheel come out of their lock, into a folder of their own.
const tools = path.join(root, "out", "build-tools");
const pip = ["-m", "pip", "--disable-pip-version-check", "--quiet"];
const locked = ["--require-hashes", "--no-deps", "--only-binary=:all:"];
rmSync(tools, { recursive: true, force: true });
run(python, ...pip, "install", ...locked, "--target", tools, "-r", path.join(repository, "requirements-build.lock"));
process.env.PYTHONPATH = tools;
run(python, ...pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", server, repository);
delete process.env.PYTHONPATH;
for (const name of ["requirements.lock", "requirements-torch.lock", "scripts/install.py"]) {
  copyFileSync(path.join(repository, name), path.join(server, path.basename(name)));
}
const listed = execFileSync(python, ["-P", "-m", "scripts.sbom"], {
  cwd: repository,
  env: { ...process.env, PYTHONPATH: repository },
});
writeFileSync(path.join(server, "sbom.cdx.json"), listed);
copyFileSync(path.join(repository, "LICENSE"), path.join(root, "LICENSE"));
run(process.execPath, "scripts/build.mjs");

const vsix = path.join(root, `${name}-${version}.vsix`);
await createVSIX({ cwd: root, packagePath: vsix, dependencies: false, allowMissingRepository: true });
