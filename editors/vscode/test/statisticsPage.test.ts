// Owns the tests of the statistics page's document, its messages and its curve.
import assert from "node:assert/strict";
import { test } from "node:test";
import { points } from "../src/figures";
import { parse } from "../src/statisticsPage";
import { contentSecurityPolicy, document, escapeHtml } from "../src/statisticsPage";

const parts = { nonce: "n0nce", source: "https://files", script: 'https://files/a"b.js', style: "https://files/c.css" };

test("nothing is allowed but the script with the nonce and local styles", () => {
  const policy = contentSecurityPolicy(parts);
  assert.match(policy, /^default-src 'none'/);
  assert.match(policy, /script-src 'nonce-n0nce'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:(?!\/\/files)/);
});

test("the document holds no inline script or style, and one script with the nonce", () => {
  const html = document(parts);
  assert.equal([...html.matchAll(/<script/g)].length, 1);
  assert.match(html, /<script nonce="n0nce" src="https:\/\/files\/a&quot;b.js"><\/script>/);
  assert.doesNotMatch(html, /<style|style=|onclick|javascript:/);
});

test("text is escaped for elements and attributes", () => {
  assert.equal(escapeHtml(`<a b='c' d="e">&`), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
});

test("only messages that the page may send are understood", () => {
  assert.deepEqual(parse({ type: "ready", more: 1 }), { type: "ready" });
  assert.deepEqual(parse({ type: "open", piece: 2 }), { type: "open", piece: 2 });
  for (const message of [null, "ready", {}, { type: "run" }, { type: "open" }, { type: "open", piece: "/etc/passwd" }, { type: "open", piece: 0.5 }]) {
    assert.equal(parse(message), undefined);
  }
});

test("a curve spans the box from zero to the largest value", () => {
  assert.deepEqual(points([0, 50, 100], 10, 20), [[0, 20], [5, 10], [10, 0]]);
  assert.deepEqual(points([7], 10, 20), [[0, 0]]);
  assert.deepEqual(points([], 10, 20), []);
});
