// Owns the figures and tables of the page.
import { count, milliseconds, numbered, share, tokensPerPass } from "../figures";
import type { Stats, Usage } from "../protocol";
import { element, section, sourceClass, swatch } from "./elements";

/** The figures of this server, large. */
export function summary(stats: Stats): Node {
  const { counters, engine } = stats;
  const number = (name: string): number => counters[name] ?? 0;
  const cards: [string, string, string][] = [
    [count(number("num_answered")), "suggestions", numbered(number("num_empty"), "empty answer")],
    [count(number("num_accepted")), "accepted", accepted(number("num_accepted"), number("num_shown"))],
    [count(number("num_accepted_chars")), "characters accepted", parts(number("num_partially_accepted"))],
  ];
  const list = element("dl", { class: "cards" });
  for (const [figure, name, note] of cards) {
    list.append(element("div", {}, element("dt", {}, name), element("dd", {}, figure), element("dd", { class: "quiet" }, note)));
  }
  const target = typeof engine.target === "string" ? [engine.target] : [];
  const lines = [...target, ...choice(engine), ...backend(engine)];
  return section("Since the server started", list, ...lines.map((line) => element("p", { class: "quiet" }, line)));
}

/** Today and the last seven days, over all windows. */
export function usage(stats: Stats): Node | undefined {
  if (!stats.usage) {
    return undefined;
  }
  const { today, week, path } = stats.usage;
  const ms = (value: number | null): string => (value === null ? "–" : milliseconds(value));
  const rows: [string, (days: Usage) => string][] = [
    ["Keys saved", (days) => count(days.num_keys_saved)],
    ["Suggestions accepted", (days) => count(days.num_accepted)],
    ["Response time, median", (days) => ms(days.p50_ms)],
    ["Response time, 95th percentile", (days) => ms(days.p95_ms)],
  ];
  const head = ["", "Today", "7 days"].map((name) => element("th", { scope: "col" }, name));
  const body = rows.map(([name, figure]) => element("tr", {}, element("th", { scope: "row" }, name), cell(figure(today)), cell(figure(week))));
  const table = element("table", { class: "narrow" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
  return section("Today and this week", table, element("p", { class: "quiet" }, `Kept on this machine for 31 days. To clear it, delete ${path}.`));
}

/** With the target `auto`: the reason for the model, the current step, and the cost of the next larger one. */
function choice(engine: Stats["engine"]): string[] {
  const auto = engine.auto as Readonly<Record<string, unknown>> | undefined;
  const said = ["reason", "step", "next"].map((name) => auto?.[name]);
  return said.filter((line) => typeof line === "string" && line !== "") as string[];
}

/** The way the model runs, and why it does not run on a faster one. */
function backend(engine: Stats["engine"]): string[] {
  const { backend: name, backend_reason: reason } = engine;
  return typeof reason === "string" && reason !== "" ? [`Runs on: ${String(name)}. ${reason}`] : [];
}

function accepted(number: number, shown: number): string {
  return shown === 0 ? "" : `${share(number, shown)} of those shown`;
}

function parts(number: number): string {
  return number === 0 ? "" : `${numbered(number, "part")} accepted`;
}

/** The words of the engine: passes, what it runs on, and the tokens by source. */
export function work(stats: Stats): Node {
  const { engine, last, tokens } = stats;
  const facts = ["device", "dtype"].map((name) => engine[name]).filter((fact) => typeof fact === "string");
  const lines = [facts.join(" · "), `${tokensPerPass(tokens) ?? "–"} tokens per pass of the model`];
  if (last) {
    const { num_tokens: num, num_written: written, num_forwards: passes } = last;
    const cost = passes === 0 ? "reused from an earlier suggestion" : `${written} written in ${numbered(passes, "pass", "passes")}`;
    lines.push(`The last suggestion: ${milliseconds(last.response_ms)}, ${numbered(num, "token")}, ${cost}`);
  }
  return section("For developers", ...lines.map((line) => element("p", { class: "quiet" }, line)));
}

/** The accepted tokens by source, as bars. */
export function bySource(stats: Stats): Node | undefined {
  // Each pass writes one token of the model after the drafts that it accepts.
  const own = ["target", stats.tokens.num_forwards ?? 0] as const;
  const rows = [own, ...Object.entries(stats.accepted_by_source)].sort(([, a], [, b]) => b - a);
  const total = rows.reduce((sum, [, number]) => sum + number, 0);
  if (total === 0) {
    return undefined;
  }
  const bars = rows.map(([source, number]) => {
    const name = stats.texts.sources[source] ?? source;
    const bar = element("meter", { class: `source-${sourceClass(source)}`, min: "0", max: String(total), value: String(number), "aria-label": name });
    return element("tr", {}, element("th", { scope: "row" }, swatch(source), name), element("td", { class: "wide" }, bar), cell(count(number)), cell(share(number, total)));
  });
  return section("Sources of tokens", element("table", {}, element("tbody", {}, ...bars)), element("p", { class: "quiet" }, "The model verified every draft. It would have written the same text without drafts."));
}

/** The reasons for no suggestion, most frequent first. */
export function reasons(stats: Stats): Node | undefined {
  const rows = Object.entries(stats.rules).sort(([, a], [, b]) => b - a);
  if (rows.length === 0) {
    return undefined;
  }
  const cells = rows.map(([rule, number]) => element("tr", {}, element("th", { scope: "row" }, stats.texts.rules[rule] ?? rule), cell(count(number))));
  return section("Reasons for no suggestion", element("table", { class: "narrow" }, element("tbody", {}, ...cells)));
}

/** The state of each folder's index. */
export function indexes(stats: Stats): Node | undefined {
  if (stats.index.length === 0) {
    return undefined;
  }
  const head = ["Folder", "State", "Files", "Tokens"].map((name) => element("th", { scope: "col" }, name));
  const rows = stats.index.map(({ folder, state, num_files: files, num_tokens: tokens, progress, problem }) => {
    const isBuilding = state === "building" && progress.total > 0;
    const shown = problem || (isBuilding ? `${state}, ${share(progress.done, progress.total)}` : state);
    return element("tr", {}, element("th", { scope: "row", title: folder }, folder), element("td", {}, shown), cell(count(files)), cell(count(tokens)));
  });
  return section("Index", element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}

function cell(text: string): HTMLElement {
  return element("td", { class: "number" }, text);
}
