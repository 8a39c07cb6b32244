// Owns the tests of versions and of the answers of interpreters.
import assert from "node:assert/strict";
import { test } from "node:test";
import { interpreterCommands, isCompatible, isSupported, parseProbe, parseServerVersion } from "../src/versions";

test("a server fits if it is not older and of the same series", () => {
  const fits: [string, string, boolean][] = [
    ["0.1.0", "0.1.0", true],
    ["0.1.3", "0.1.0", true],
    ["0.1.0", "0.1.1", false],
    ["0.2.0", "0.1.0", false],
    ["1.4.0", "1.2.5", true],
    ["2.0.0", "1.2.5", false],
    ["0.1.0.dev3", "0.1.0", true],
    ["none", "0.1.0", false],
  ];
  for (const [found, own, expected] of fits) {
    assert.equal(isCompatible(found, own), expected, `${found} for ${own}`);
  }
});

test("Python 3.11 is the oldest that will do, and 3.14 the newest", () => {
  const ages: [[number, number], boolean][] = [[[3, 10], false], [[3, 11], true], [[3, 14], true], [[3, 15], false], [[2, 7], false], [[4, 12], false]];
  for (const [version, expected] of ages) {
    assert.equal(isSupported(version), expected, version.join("."));
  }
});

test("the last line that a probe prints counts, whatever a start-up file printed before", () => {
  const found = parseProbe('hello\n{"executable": "/usr/bin/python3", "python": [3, 12], "server": null}\n');
  assert.deepEqual(found, { executable: "/usr/bin/python3", python: [3, 12], server: undefined });
});

test("anything else is no interpreter", () => {
  for (const output of ["", "Python 3.12.1", "{}", '{"executable": "", "python": [3, 12]}', '{"executable": "x", "python": "3"}', "null"]) {
    assert.equal(parseProbe(output), undefined, output);
  }
});

test("another program called slipstream is not taken for the server", () => {
  assert.equal(parseServerVersion("slipstream 0.1.0\n"), "0.1.0");
  assert.equal(parseServerVersion("Slipstream WAF v1.0\n"), undefined);
  assert.equal(parseServerVersion("slipstream not installed\n"), undefined);
});

test("Windows asks its launcher first, other systems the newest name, and neither for what may be too new", () => {
  assert.deepEqual(interpreterCommands("win32").slice(0, 4), [["py", "-3.14"], ["py", "-3.13"], ["py", "-3.12"], ["py", "-3.11"]]);
  assert.deepEqual(interpreterCommands("linux")[0], ["python3.14"]);
});
