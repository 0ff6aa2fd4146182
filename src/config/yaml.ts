import { type Document, LineCounter, type Node, parseAllDocuments, parseDocument } from "yaml";

/** A text of YAML, of which JSON is a part. */
export interface YamlText {
  readonly documents: readonly Document[];
  readonly lines: LineCounter;
  /** Why it is not read. */
  readonly faults: readonly { readonly line: number; readonly col: number; readonly message: string }[];
}

/** @param options `several`: documents; `merge`: `<<` stands for the members of another mapping */
export function readYaml(
  text: string,
  { several = false, merge = false }: { readonly several?: boolean; readonly merge?: boolean } = {},
): YamlText {
  const lines = new LineCounter();
  const options = { lineCounter: lines, prettyErrors: false, merge };
  const documents = several ? [...parseAllDocuments(text, options)] : [parseDocument(text, options)];
  // Errors after the first mostly follow from it: a file that is no YAML has hundreds.
  const [first, ...others] = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
  const more = others.length === 0 ? "" : `, and ${others.length.toLocaleString("en")} more`;
  const faults =
    first === undefined ? [] : [{ ...lines.linePos(first.pos[0]), message: `${first.message}${more}` }];
  return { documents, lines, faults };
}

/** Where in its text a node begins. */
export function startOf(node: Node | null | undefined): number {
  return node?.range?.[0] ?? 0;
}
