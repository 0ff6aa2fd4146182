import { pointerTo } from "../../../json/pointer.ts";
import { indentedLines, type Piece } from "../../parts/json-tokens.ts";

/** A line of indented JSON, and where its value is. */
export interface JsonLine {
  readonly pieces: readonly Piece[];
  /** JSON pointer of the value that begins in the line, or that its bracket closes. */
  readonly pointer: string;
  /** Equal for two lines that say the same at the same place, whatever stands before them in a list, and behind a comma. */
  readonly key: string;
}

interface Container {
  readonly pointer: string;
  /** The pointer with `*` for each place in a list. */
  readonly pattern: string;
  readonly isList: boolean;
  items: number;
}

/** @param text well-formed JSON */
export function jsonLines(text: string): readonly JsonLine[] {
  const open: Container[] = [];
  return indentedLines(text).map((pieces) => {
    const said = pieces.filter(({ kind }) => kind !== "space");
    const first = said[0]?.text ?? "";
    const words = textOf(said.at(-1)?.text === "," ? said.slice(0, -1) : said);
    if (first === "}" || first === "]") {
      const { pointer, pattern } = open.pop() ?? { pointer: "", pattern: "" };
      return { pieces, pointer, key: `${pattern} ${words}` };
    }
    const { pointer, pattern } = placeOf(open.at(-1), said[0]);
    const last = said.at(-1)?.text;
    if (last === "{" || last === "[") open.push({ pointer, pattern, isList: last === "[", items: 0 });
    return { pieces, pointer, key: `${pattern} ${words}` };
  });
}

function placeOf(
  parent: Container | undefined,
  first: Piece | undefined,
): { readonly pointer: string; readonly pattern: string } {
  if (parent === undefined) return { pointer: "", pattern: "" };
  if (parent.isList) {
    parent.items += 1;
    return { pointer: `${parent.pointer}/${parent.items - 1}`, pattern: `${parent.pattern}/*` };
  }
  const step = JSON.parse(first?.text ?? '""') as string;
  return { pointer: pointerTo(parent.pointer, step), pattern: pointerTo(parent.pattern, step) };
}

const textOf = (pieces: readonly Piece[]): string => pieces.map(({ text }) => text).join(" ");
