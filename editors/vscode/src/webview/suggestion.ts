// Owns the section of the last suggestion, with the source of each part.
import type { PieceView } from "../statisticsPage";
import type { Stats, Texts } from "../protocol";
import { element, section, sourceClass, swatch } from "./elements";

/** `open` is called with the number of a part to open its file. */
export function suggestion(stats: Stats, pieces: readonly PieceView[], open: (piece: number) => void): Node | undefined {
  const { last } = stats;
  if (!last) {
    return undefined;
  }
  const shown = pieces.length > 0 ? pieces : [{ text: last.text, source: "target", evidence: "", place: undefined }];
  const code = element("pre", { tabindex: "0", "aria-label": "The last suggestion" });
  code.append(...shown.map((piece) => element("span", { class: `piece source-${sourceClass(piece.source)}`, title: described(piece, stats.texts) }, piece.text)));
  return section("Last suggestion", code, legend(shown, stats.texts), places(shown, open));
}

function described(piece: PieceView, { sources }: Texts): string {
  return [sources[piece.source] ?? piece.source, piece.place ?? piece.evidence].filter((text) => text !== "").join(" · ");
}

function legend(pieces: readonly PieceView[], texts: Texts): Node {
  const used = [...new Set(pieces.map(({ source }) => source))];
  const entries = used.map((source) => element("li", {}, swatch(source), texts.sources[source] ?? source));
  return element("ul", { class: "legend", "aria-label": "Colours" }, ...entries);
}

/** A link for each part that was read from a file. */
function places(pieces: readonly PieceView[], open: (piece: number) => void): Node | undefined {
  const links = pieces.flatMap((piece, index) => {
    if (piece.place === undefined) {
      return [];
    }
    const link = element("button", { type: "button", class: "link", id: `piece-${index}` }, piece.place);
    link.addEventListener("click", () => {
      open(index);
    });
    return [element("li", {}, swatch(piece.source), element("code", {}, firstLine(piece.text)), " from ", link)];
  });
  return links.length > 0 ? element("ul", { class: "places" }, ...links) : undefined;
}

function firstLine(text: string): string {
  const [line = "", ...more] = text.trim().split("\n");
  return more.length > 0 ? `${line} …` : line;
}
