import { pathOf } from "../../schema/field-path.ts";
import { NAME_LENGTH } from "../../domain/names.ts";
import { note } from "../output.ts";
import { printableLine } from "../printable.ts";
import type { ParsedDocument } from "../registry/document.ts";
import type { ImportedAction } from "./actions.ts";
import type { Omitted } from "./message.ts";

/** Further lines of the same note that are named before they are only counted. */
const MOST_LINES = 4;

/** Finds the places in the file that JSON pointers lead to: `shop.yaml:12`. */
export function placesIn({ value, place }: ParsedDocument): (pointer: string) => string {
  return (pointer) => place(pathOf(pointer, value));
}

/** What is different in an action from the document, each note once with all its lines. */
export function tellNotes({ action, notes }: ImportedAction, placeOf: (pointer: string) => string): void {
  const byMessage = Map.groupBy(notes, ({ message }) => message);
  for (const [message, all] of byMessage) {
    const [first = "", ...more] = new Set(all.map(({ pointer }) => placeOf(pointer)));
    const lines = more.slice(0, MOST_LINES).map((place) => place.slice(place.lastIndexOf(":") + 1));
    const rest = more.length - lines.length;
    if (rest > 0) lines.push(`${rest.toLocaleString("en")} more`);
    const also = lines.length === 0 ? "" : ` (also ${lines.join(", ")})`;
    note(printableLine(`${first}: ${action}: ${message}${also}`));
  }
}

/** A line for each message there is no action for. */
export function omissionsOf(omitted: readonly Omitted[], placeOf: (pointer: string) => string): string[] {
  return omitted.map(({ name, place, message }) => {
    const shown = name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH).toWellFormed()}…` : name;
    return printableLine(`${placeOf(place)}: ${shown}: ${message}`);
  });
}
