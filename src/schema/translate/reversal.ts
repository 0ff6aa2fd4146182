import { pointerSteps } from "../field-path.ts";

/** Inside these, a schema that accepts more may have the one around it accept less. */
const REVERSING = new Set(["not", "if", "oneOf"]);

interface Reference {
  /** Where it stands in the source, and the place it leads to. */
  readonly from: string;
  readonly to: string;
}

/**
 * Tells the places of a source in which to leave something out could accept less. It errs to that side: a property of
 * the name `not` counts as the keyword.
 * @param containers the root and the definitions, by their places
 */
export function reversed(
  containers: readonly string[],
  references: readonly Reference[],
): (pointer: string) => boolean {
  const turned = new Set<string>();
  const isTurned = (pointer: string): boolean => {
    const container = containers
      .filter((place) => pointer === place || pointer.startsWith(`${place}/`))
      .reduce((longest, place) => (place.length >= longest.length ? place : longest), "");
    const below = pointerSteps(pointer.slice(container.length));
    return turned.has(container) || below.some((step) => REVERSING.has(step));
  };
  for (let before = -1; before < turned.size;) {
    before = turned.size;
    for (const { from, to } of references) if (isTurned(from)) turned.add(to);
  }
  return isTurned;
}
