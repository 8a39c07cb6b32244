// Owns the tests of what the server is told, and of which languages are on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isEnabledFor, serverSettings, toggled } from "../src/settings";

function told(set: Readonly<Record<string, unknown>>, isTrusted = true): Record<string, unknown> {
  return serverSettings((key) => ({ value: set[key] ?? (key === "candidates" ? 3 : null), isSet: key in set }), isTrusted);
}

test("the server is told what the user set, so that config.toml holds for the rest", () => {
  assert.deepEqual(told({ maxTokens: 32, "index.exclude": ["*.sql"] }), { maxTokens: 32, candidates: 3, index: { exclude: ["*.sql"] } });
  assert.deepEqual(told({}), { candidates: 3, index: {} });
  assert.deepEqual(told({ "remote.url": "https://a.example" }), { candidates: 3, index: {}, remote: { url: "https://a.example" } });
});

test("in a workspace that is not trusted nothing is indexed, whatever is set", () => {
  assert.deepEqual(told({ "index.enabled": true }, false).index, { enabled: false });
});

test("a star speaks for the languages that are not named", () => {
  assert.equal(isEnabledFor({}, "python"), true);
  assert.equal(isEnabledFor({ "*": false, python: true }, "python"), true);
  assert.equal(isEnabledFor({ "*": false, python: true }, "go"), false);
});

test("switching a language over and back leaves what was there", () => {
  for (const languages of [{}, { "*": false }, { go: false }, { "*": false, go: true }]) {
    const once = toggled(languages, "python");
    assert.notEqual(isEnabledFor(once, "python"), isEnabledFor(languages, "python"));
    assert.deepEqual(toggled(once, "python"), languages);
  }
});
