// Owns the part of the page about response times.
import { points } from "../figures";
import { milliseconds } from "../figures";
import type { Stats } from "../protocol";
import { element, section, svg } from "./elements";

const WIDTH = 480;
const HEIGHT = 64;

export function latency(stats: Stats): Node | undefined {
  const { response_ms: response, recent_response_ms: recent } = stats;
  if (response.count === 0) {
    return undefined;
  }
  const figures: [string, number | undefined][] = [
    ["Median", response.p50],
    ["95th percentile", response.p95],
    ["99th percentile", response.p99],
    ["Longest", response.max],
  ];
  const list = element("dl", { class: "figures" });
  for (const [name, ms] of figures) {
    if (ms !== undefined) {
      list.append(element("div", {}, element("dt", {}, name), element("dd", {}, milliseconds(ms))));
    }
  }
  return section("Response time", list, recent.length > 1 ? curve(recent) : undefined);
}

/** The last response times as a line, with a dot at the newest. */
function curve(values: readonly number[]): Node {
  const places = points(values, WIDTH, HEIGHT);
  const line = places.map(([x, y]) => `${x},${y}`).join(" ");
  const [x, y] = places.at(-1) ?? [0, 0];
  const longest = milliseconds(Math.max(...values));
  const label = `The last ${values.length} response times: longest ${longest}, newest ${milliseconds(values.at(-1) ?? 0)}.`;
  const drawing = svg(
    "svg",
    { viewBox: `-4 -4 ${WIDTH + 8} ${HEIGHT + 8}`, class: "curve", role: "img", "aria-label": label },
    svg("polygon", { class: "area", points: `0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}` }),
    svg("polyline", { class: "line", points: line }),
    svg("circle", { class: "newest", cx: String(x), cy: String(y), r: "3.5" }),
  );
  const caption = element("figcaption", {}, `The last ${values.length} suggestions, oldest first. The top is ${longest}.`);
  return element("figure", {}, drawing, caption);
}
