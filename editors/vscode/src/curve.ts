// Owns the geometry of a line of figures. Must not know the page.

/** The points of `values` in a box of that size, oldest at the left, the largest at the top, zero at the bottom. */
export function points(values: readonly number[], width: number, height: number): [number, number][] {
  const top = Math.max(...values, 1);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  return values.map((value, index) => [round(index * step), round(height - (Math.max(value, 0) / top) * height)]);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
