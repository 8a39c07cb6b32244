// Owns the tests of late answers and of suggestions accepted in parts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { partTaken, refit } from "../src/itemFit";

const asked = { version: 1, numLines: 10, text: "x = ret)", column: 7 };
const item = { text: "urn_value", start: 7, end: 7 };

test("an answer to the document as it is stays as it is", () => {
  assert.deepEqual(refit(item, asked, asked), item);
});

test("an answer whose beginning was typed meanwhile covers what was typed", () => {
  assert.deepEqual(refit(item, asked, { version: 3, numLines: 10, text: "x = retur)" }), { ...item, end: 9 });
});

test("an answer that replaces what stands left of the cursor still fits when its beginning is typed", () => {
  const replacing = { text: "return", start: 4, end: 7 };
  assert.deepEqual(refit(replacing, asked, { version: 2, numLines: 10, text: "x = retu)" }), { ...replacing, end: 8 });
});

test("an answer is dropped after any other change", () => {
  const changes = [
    { version: 2, numLines: 10, text: "x = retx)" },
    { version: 2, numLines: 10, text: "x = re)" },
    { version: 2, numLines: 11, text: "x = ret)" },
    { version: 2, numLines: 10, text: "y = retu)" },
    { version: 2, numLines: 10, text: "x = retu" },
  ];
  for (const now of changes) {
    assert.equal(refit(item, asked, now), undefined, now.text);
  }
});

test("a word that is inserted at once where the suggestion goes on was taken", () => {
  assert.equal(partTaken("self.members.get", 0, "self"), 4);
  assert.equal(partTaken("self.members.get", 4, ".members"), 12);
});

test("typing, brackets that close by themselves, indented new lines, other text and the whole are no parts", () => {
  const others: [string, number, string][] = [
    ["self.x", 0, "s"],
    ["()x", 0, "()"],
    ["x:\n    y", 2, "\n    "],
    ["self.x", 0, "other"],
    ["self.x", 0, "self.x"],
  ];
  for (const [text, numTaken, inserted] of others) {
    assert.equal(partTaken(text, numTaken, inserted), undefined, inserted);
  }
});
