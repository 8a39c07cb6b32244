// Owns the tests of how a proposed edit reads in its line and in a hint.
import assert from "node:assert/strict";
import { test } from "node:test";
import { changePreview, keyHint, placeHint } from "../src/editText";

const NBSP = "\u00a0";

test("a change within a line stands where the old text is", () => {
  const preview = changePreview("    ", "stream", ".read()");
  assert.deepEqual(preview, { isInline: true, shown: "stream", lines: ["    stream.read()"] });
});

test("a change of several lines stands at the end of its line, and its hover has each line", () => {
  const preview = changePreview("  ", "first\r\n  second", ";");
  assert.equal(preview.isInline, false);
  assert.equal(preview.shown, `first${NBSP}⏎${NBSP}second;`);
  assert.deepEqual(preview.lines, ["  first", "  second;"]);
});

test("a text that only removes shows nothing new", () => {
  assert.equal(changePreview("a(", "", ")").shown, "");
});

test("a long text is cut", () => {
  const { shown } = changePreview("", "x".repeat(1000), "");
  assert.equal(shown.length, 120);
  assert.ok(shown.endsWith("…"));
});

test("blanks and tabs do not collapse", () => {
  assert.equal(changePreview("", "a  b\tc", "").shown, `a${NBSP}${NBSP}b${NBSP}${NBSP}c`);
});

test("a hint names the keys, and offers all places where there are several", () => {
  assert.equal(keyHint(true, 1), "Tab to apply");
  assert.equal(keyHint(false, 7), "Tab to jump, Alt+Shift+\\ for all places");
});

test("a hint says where the edit is, with lines counted from one", () => {
  assert.equal(placeHint(41, 3, undefined), "↓ next edit in line 42, Tab to jump");
  assert.equal(placeHint(0, 3, undefined), "↑ next edit in line 1, Tab to jump");
  assert.equal(placeHint(9, 3, "lib/area.ts"), "→ next edit in lib/area.ts:10, Tab to jump");
});
