import {
  type Document,
  isScalar,
  LineCounter,
  type Node,
  parseAllDocuments,
  parseDocument,
  type Scalar,
  visit,
} from "yaml";

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
  // The parser would compare each key with all before it: 5,000 of them took more than a second.
  const options = { lineCounter: lines, prettyErrors: false, merge, uniqueKeys: false } as const;
  const documents = several ? [...parseAllDocuments(text, options)] : [parseDocument(text, options)];
  const faultAt = (offset: number, message: string) => Object.assign(lines.linePos(offset), { message });
  // Errors after the first mostly follow from it: a file that is no YAML has hundreds.
  const [first, ...others] = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
  if (first !== undefined) {
    const more = others.length === 0 ? "" : `, and ${others.length.toLocaleString("en")} more`;
    return { documents, lines, faults: [faultAt(first.pos[0], `${first.message}${more}`)] };
  }
  const repeated = documents.flatMap(repeatedKeys);
  return {
    documents,
    lines,
    faults: repeated.map((key) => faultAt(startOf(key), "Map keys must be unique")),
  };
}

function repeatedKeys(document: Document): readonly Scalar[] {
  const repeated: Scalar[] = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) repeated.push(key);
        seen.add(key.value);
      }
    },
  });
  return repeated;
}

/** Where in its text a node begins. */
export function startOf(node: Node | null | undefined): number {
  return node?.range?.[0] ?? 0;
}
