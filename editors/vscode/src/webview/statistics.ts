// Owns the script of the statistics page, which draws the extension's messages and asks it to open files.
import type { FromPage, PageState, ToPage } from "../statisticsPage";
import type { Stats } from "../protocol";
import { latency } from "./latency";
import { element } from "./elements";
import { bySource, indexes, reasons, summary, usage, work } from "./sections";
import { suggestion } from "./suggestion";

interface VsCode {
  postMessage(message: FromPage): void;
}
declare function acquireVsCodeApi(): VsCode;

const editor = acquireVsCodeApi();
const page = document.getElementById("page");
let drawn = "";

window.addEventListener("message", (event: MessageEvent<ToPage>) => {
  // Drawing the same figures again would disturb selections and screen readers.
  const text = JSON.stringify(event.data);
  if (text !== drawn) {
    drawn = text;
    draw(event.data);
  }
});
editor.postMessage({ type: "ready" });

function draw(state: PageState): void {
  const focused = document.activeElement?.id ?? "";
  const sentence = element("p", { class: state.isError ? "state error" : "state", role: "status" }, state.sentence);
  const { stats } = state;
  page?.replaceChildren(element("h1", {}, "Slipstream"), sentence, ...(stats ? figures(state, stats) : []));
  page?.setAttribute("aria-busy", "false");
  document.getElementById(focused)?.focus();
}

function figures(state: PageState, stats: Stats): Node[] {
  return [
    usage(stats),
    summary(stats),
    suggestion(stats, state.pieces, (piece) => {
      editor.postMessage({ type: "open", piece });
    }),
    reasons(stats),
    indexes(stats),
    work(stats),
    latency(stats),
    bySource(stats),
  ].filter((part) => part !== undefined);
}
