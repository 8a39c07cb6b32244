// Owns the tests that hold package.json together with the code and with the server's own settings.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { COMMANDS } from "../src/commandNames";
import { OWN_KEYS, SCHEMES, SERVER_KEYS } from "../src/settings";
import { NEWEST_MINOR, OLDEST_MINOR } from "../src/versions";

interface Property {
  readonly type: string;
  readonly default: unknown;
  readonly scope: string;
  readonly order: number;
  readonly enum?: readonly string[];
  readonly items?: { readonly enum?: readonly string[] };
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
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

const MACHINE = ["target", "remote.url", "remote.tokenFile", "remote.caFile", "remote.model", "remote.tokenizer", "draftModel", "device", "dtype", "shadow", "sharedEngine", "server.command", "server.python", "server.pipArguments"];
// The extension offers several where the server by itself offers one.
const OWN_DEFAULTS: Readonly<Record<string, unknown>> = { candidates: 3 };

test("package.json has exactly the settings that the code knows, each described", () => {
  const keys = [...SERVER_KEYS, ...OWN_KEYS].map((key) => `slipstream.${key}`);
  assert.deepEqual(Object.keys(properties).sort(), keys.sort());
  for (const [key, { description, markdownDescription }] of Object.entries(properties)) {
    assert.ok(description ?? markdownDescription, key);
  }
});

test("programs, paths and models are the machine's, never a workspace's", () => {
  const machine = Object.entries(properties).filter(([, { scope }]) => scope === "machine");
  assert.deepEqual(machine.map(([key]) => key).sort(), MACHINE.map((key) => `slipstream.${key}`).sort());
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
  for (const text of [properties["slipstream.server.python"]?.markdownDescription, read(root, "README.md")]) {
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

interface Schema {
  readonly properties: Readonly<Record<string, Schema & { readonly $ref?: string }>>;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
}

const PRINT_SCHEMA = `
import json
from completion_engine.config import DRAFTERS
from lsp_server.workspace.settings import Settings
print(json.dumps({"schema": Settings.model_json_schema(by_alias=True), "drafters": DRAFTERS}))
`;

function serverSchema(): { schema: Schema; drafters: readonly string[] } | undefined {
  const own = path.join(repository, ".venv", "bin", "python");
  const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");
  try {
    const output = execFileSync(python, ["-c", PRINT_SCHEMA], { cwd: repository, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return JSON.parse(output) as { schema: Schema; drafters: readonly string[] };
  } catch {
    return undefined;
  }
}

test("names, defaults, choices and limits are those of the server's settings", (context) => {
  const server = serverSchema();
  if (server === undefined) {
    context.skip("needs a Python in which the server is installed; PYTHON names one");
    return;
  }
  const { index, remote, ...top } = server.schema.properties;
  const inGroup = (name: string, group?: { readonly $ref?: string }): [string, Schema][] => {
    const found = server.schema.$defs?.[group?.$ref?.split("/").at(-1) ?? ""]?.properties ?? {};
    return Object.entries(found).map(([key, schema]) => [`${name}.${key}`, schema]);
  };
  const all: Record<string, Schema> = { ...top, ...Object.fromEntries([...inGroup("index", index), ...inGroup("remote", remote)]) };
  assert.deepEqual(Object.keys(all).sort(), [...SERVER_KEYS].sort());
  for (const [key, schema] of Object.entries(all)) {
    const property = properties[`slipstream.${key}`];
    const { type, enum: choices, minimum, maximum, minLength } = property ?? {};
    const expected = { type: schema.type, choices: schema.enum, minimum: schema.minimum, maximum: schema.maximum, minLength: schema.minLength };
    assert.deepEqual({ type, choices, minimum, maximum, minLength }, expected, key);
    assert.deepEqual(property?.default, OWN_DEFAULTS[key] ?? schema.default ?? {}, key);
  }
  assert.deepEqual(properties["slipstream.drafters"]?.items?.enum, server.drafters);
});
