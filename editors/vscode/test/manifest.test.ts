// Owns the tests that hold package.json together with the code.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { COMMANDS } from "../src/commandNames";
import { OWN_KEYS, SHOWN_KEYS } from "../src/settingKeys";
import { SCHEMES } from "../src/settings";
import { NEWEST_MINOR, OLDEST_MINOR } from "../src/versions";

interface Property {
  readonly scope: string;
  readonly order: number;
  readonly description?: string;
  readonly markdownDescription?: string;
}
interface Manifest {
  readonly version: string;
  readonly capabilities: {
    readonly untrustedWorkspaces: { readonly restrictedConfigurations: readonly string[] };
    readonly virtualWorkspaces: { readonly supported: unknown };
  };
  readonly contributes: {
    readonly commands: readonly { readonly command: string }[];
    readonly configuration: readonly { readonly properties: Readonly<Record<string, Property>> }[];
    readonly walkthroughs: readonly { readonly steps: readonly { readonly media: { readonly svg: string } }[] }[];
  };
}

// The bundled tests lie in out/test.
const root = path.resolve(__dirname, "..", "..");
const repository = path.resolve(root, "..", "..");
const read = (...names: string[]): string => readFileSync(path.join(...names), "utf8");
const manifest = JSON.parse(read(root, "package.json")) as Manifest;
const properties = Object.assign({}, ...manifest.contributes.configuration.map((part) => part.properties)) as Record<string, Property>;

test("package.json has exactly the settings of the pages, each described", () => {
  const keys = [...SHOWN_KEYS, ...OWN_KEYS].map((key) => `slipstream.${key}`);
  assert.deepEqual(Object.keys(properties).sort(), keys.sort());
  for (const [key, { description, markdownDescription }] of Object.entries(properties)) {
    assert.ok(description ?? markdownDescription, key);
  }
});

test("a person sees at most 15 settings", () => {
  assert.ok(Object.keys(properties).length <= 15);
});

test("programs, paths and models are the machine's, never a workspace's", () => {
  const names = ["target", "remote.url", "server.command", "server.python"].map((key) => `slipstream.${key}`);
  const machine = Object.entries(properties).filter(([, { scope }]) => scope === "machine");
  assert.deepEqual(machine.map(([key]) => key).sort(), names.sort());
});

test("nothing that a workspace may set holds before it is trusted", () => {
  const window = Object.entries(properties).filter(([, { scope }]) => scope !== "machine").map(([key]) => key);
  assert.deepEqual([...manifest.capabilities.untrustedWorkspaces.restrictedConfigurations].sort(), window.sort());
});

test("a virtual workspace is promised no more than is completed in one", () => {
  const onDisk = ["file", "untitled", "vscode-notebook-cell"];
  const isCompleted = SCHEMES.some((scheme) => !onDisk.includes(scheme));
  assert.equal(manifest.capabilities.virtualWorkspaces.supported !== false, isCompleted);
});

test("the settings of a page have an order, each a place of its own", () => {
  for (const { properties: page } of manifest.contributes.configuration) {
    const orders = Object.values(page).map(({ order }) => order);
    assert.equal(new Set(orders).size, orders.length, JSON.stringify(orders));
  }
});

test("the versions of Python are those that the server allows", () => {
  const allowed = /^requires-python = ">=3\.(\d+),<3\.(\d+)"$/m.exec(read(repository, "pyproject.toml"));
  assert.deepEqual(allowed?.slice(1).map(Number), [OLDEST_MINOR, NEWEST_MINOR + 1]);
  for (const text of [properties["slipstream.server.python"]?.description, read(root, "README.md")]) {
    assert.match(text ?? "", new RegExp(`3\\.${OLDEST_MINOR} to 3\\.${NEWEST_MINOR}\\b`));
  }
});

test("the version is the server's", () => {
  assert.equal(/^version = "(.+)"$/m.exec(read(repository, "pyproject.toml"))?.[1], manifest.version);
});

test("every command is registered, and every registered command is in package.json", () => {
  const registered = COMMANDS.map((name) => `slipstream.${name}`);
  assert.deepEqual(manifest.contributes.commands.map(({ command }) => command).sort(), registered.sort());
});

test("the walkthrough's pictures are there and load nothing", () => {
  for (const { media } of manifest.contributes.walkthroughs.flatMap(({ steps }) => steps)) {
    assert.doesNotMatch(read(root, media.svg), /<script|href=|url\(http/);
  }
});

test("every source file says first what it owns and stays below 300 lines", () => {
  for (const folder of ["src", "src/webview", "test"]) {
    for (const name of readdirSync(path.join(root, folder)).filter((file) => file.endsWith(".ts"))) {
      const lines = read(root, folder, name).split("\n");
      assert.match(lines[0] ?? "", /^\/\/ Owns /, name);
      assert.ok(lines.length < 300, `${name} has ${lines.length} lines`);
    }
  }
});
