// Owns the tests of the status bar's text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { count, milliseconds, share, wrapped } from "../src/figures";
import type { Stats } from "../src/protocol";
import { describe, figures, type Situation } from "../src/statusText";

const stats: Stats = {
  state: "ready",
  message: "",
  advice: "",
  progress: { done: 0, total: 0 },
  engine: {},
  counters: { num_shown: 8, num_accepted: 2, num_accepted_chars: 31 },
  tokens: { num_tokens: 290, num_written: 34, num_forwards: 10, num_accepted: 24 },
  rules: {},
  accepted_by_source: {},
  response_ms: { count: 9, p50: 38.2, p95: 102, p99: 390, max: 400 },
  index: [{ folder: "/home/me/shop", state: "building", num_files: 3, num_tokens: 9, progress: { done: 1, total: 4, path: "" }, problem: "" }],
  last: { id: "7", response_ms: 38.2, num_tokens: 29, num_written: 12, num_forwards: 10, tokens_per_pass: 1.2, accepted_by_source: {}, text: "x" },
  recent_response_ms: [38.2],
  usage: null,
  texts: { rules: {}, sources: {}, stages: {} },
};
const situation: Situation = { phase: "ready", message: "", percent: undefined, snoozedUntil: undefined, silentLanguage: undefined };

test("the status bar names the state", () => {
  const expected: [Partial<Situation>, string][] = [
    [{}, "$(zap) Slipstream"],
    [{ phase: "loading", percent: 41.6 }, "$(loading~spin) Slipstream 42 %"],
    [{ phase: "loading" }, "$(loading~spin) Slipstream"],
    [{ phase: "waiting" }, "$(loading~spin) Slipstream"],
    [{ phase: "off" }, "$(circle-slash) Slipstream"],
    [{ snoozedUntil: "14:05" }, "$(circle-slash) Slipstream"],
    [{ silentLanguage: "markdown" }, "$(circle-slash) Slipstream"],
    [{ phase: "failed", snoozedUntil: "14:05" }, "$(error) Slipstream"],
  ];
  for (const [change, text] of expected) {
    assert.equal(describe({ ...situation, ...change }).text, text);
  }
});

test("a failure shows its reason, and suppression its cause", () => {
  assert.equal(describe({ ...situation, phase: "failed", message: "No memory." }).sentence, "No memory.");
  assert.equal(describe({ ...situation, silentLanguage: "markdown" }).sentence, "Suggestions are switched off for markdown.");
  assert.equal(describe({ ...situation, phase: "off" }).sentence, "Suggestions are switched off.");
  assert.equal(describe({ ...situation, phase: "off", message: "Everything was removed." }).sentence, "Everything was removed.");
});

test("the tooltip's figures hold latency, acceptance and the index that is built", () => {
  const rows = Object.fromEntries(figures(stats));
  assert.equal(rows["Response time, median"], "38 ms");
  assert.equal(rows["Accepted suggestions"], "2 of 8 (25 %)");
  assert.equal(rows["Tokens per pass"], undefined);
  assert.equal(rows["Index of shop"], "25 %");
});

test("a long text is broken between words, and none is lost", () => {
  assert.deepEqual(wrapped("one two three", 7), ["one two", "three"]);
  assert.deepEqual(wrapped("incomprehensible a", 4), ["incomprehensible", "a"]);
  assert.deepEqual(wrapped("", 4), [""]);
});

test("figures are written without false precision", () => {
  assert.deepEqual([0, 0.84, 9.94, 9.96, 38.4, 999.6, 1440].map(milliseconds), ["0 ms", "0.8 ms", "9.9 ms", "10 ms", "38 ms", "1.0 s", "1.4 s"]);
  assert.deepEqual([share(1, 3), share(0, 0)], ["33 %", "–"]);
  assert.deepEqual([count(9), count(48_800_123)], ["9", "48\u202f800\u202f123"]);
});
