// Owns creating elements. Text is inserted as text, never as markup.

export type Attributes = Readonly<Record<string, string>>;
export type Child = Node | string | undefined;

const SVG = "http://www.w3.org/2000/svg";

export function element(name: string, attributes: Attributes = {}, ...children: readonly Child[]): HTMLElement {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name: string, attributes: Attributes, ...children: readonly Child[]): SVGElement {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled<T extends Element>(parent: T, attributes: Attributes, children: readonly Child[]): T {
  for (const [name, value] of Object.entries(attributes)) {
    parent.setAttribute(name, value);
  }
  parent.append(...children.filter((child) => child !== undefined));
  return parent;
}

/** A part of the page with a heading. */
export function section(title: string, ...children: readonly Child[]): HTMLElement {
  return element("section", { "aria-label": title }, element("h2", {}, title), ...children);
}

/** A small dot in a source's colour. */
export function swatch(source: string): HTMLElement {
  return element("span", { class: `swatch source-${sourceClass(source)}`, "aria-hidden": "true" });
}

const KNOWN = new Set(["target", "ngram", "neural", "selected"]);

/** The source as part of a class name. An unknown source looks like the model's own text. */
export function sourceClass(source: string): string {
  return KNOWN.has(source) ? source : "target";
}
