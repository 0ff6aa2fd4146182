import type { Deprecation } from "../domain/action.ts";
import { printableLine } from "./printable.ts";

/** What a publisher is told of a deprecated action. */
export function deprecationNote({ action, since, successor }: Deprecation): string {
  const instead = successor === null ? "" : `; publish to ${successor} instead`;
  return `Warning: ${printableLine(`${action} is deprecated since ${since}${instead}.`)}`;
}
