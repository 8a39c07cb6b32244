// Owns the tests of the settings that the server gets, and of the languages that are on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADVANCED_KEYS } from "../src/settingKeys";
import { isEnabledFor, serverSettings, toggled } from "../src/settings";

function sent(set: Readonly<Record<string, unknown>>, ofUser: Readonly<Record<string, unknown>> = {}, isTrusted = true): Record<string, unknown> {
  return serverSettings((key) => set[key], (key) => ofUser[key], isTrusted);
}

test("the server gets what the user set, so that config.toml holds for the rest", () => {
  assert.deepEqual(sent({ eagerness: 0.3, "index.exclude": ["*.sql"] }), { eagerness: 0.3, "index.exclude": ["*.sql"] });
  assert.deepEqual(sent({}), {});
  assert.deepEqual(sent({ "remote.url": "https://a.example" }), { "remote.url": "https://a.example" });
});

test("settings that are on no page come from the user alone", () => {
  for (const key of ADVANCED_KEYS) {
    assert.deepEqual(sent({ [key]: "from a workspace" }), {});
    assert.deepEqual(sent({ [key]: "from a workspace" }, { [key]: "from the user" }), { [key]: "from the user" });
  }
});

test("in a workspace that is not trusted nothing is indexed, whatever is set", () => {
  assert.equal(sent({ "index.enabled": true }, {}, false)["index.enabled"], false);
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
