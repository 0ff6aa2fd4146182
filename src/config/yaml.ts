import {
  type Document,
  isScalar,
  LineCounter,
  type Node,
  parseAllDocuments,
  parseDocument,
  visit,
} from "yaml";

/** Uses of anchors in a document. Anchors inside anchors multiply, so that more could fill the memory. */
export const MAX_ALIASES = 10_000;

interface YamlFault {
  readonly offset: number;
  readonly message: string;
}

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
  const options = { lineCounter: lines, prettyErrors: false, uniqueKeys: false, merge };
  const documents = several ? [...parseAllDocuments(text, options)] : [parseDocument(text, options)];
  // Errors after the first mostly follow from it: a file that is no YAML has hundreds.
  const [first, ...others] = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
  const more = others.length === 0 ? "" : `, and ${others.length.toLocaleString("en")} more`;
  const faults: readonly YamlFault[] = [
    ...(first === undefined ? [] : [{ offset: first.pos[0], message: `${first.message}${more}` }]),
    ...documents.flatMap(contentFaults),
  ];
  return {
    documents,
    lines,
    faults: faults.map(({ offset, message }) => Object.assign(lines.linePos(offset), { message })),
  };
}

/**
 * Too many aliases, and duplicate keys: the reader's own search for those takes minutes for 100,000 of them, as its time
 * grows with the square of their number.
 */
function contentFaults(document: Document): readonly YamlFault[] {
  const faults: YamlFault[] = [];
  let aliases = 0;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) faults.push({ offset: startOf(key), message: "Map keys must be unique" });
        seen.add(key.value);
      }
    },
    Alias(_, alias) {
      aliases += 1;
      if (aliases <= MAX_ALIASES) return undefined;
      const max = MAX_ALIASES.toLocaleString("en");
      faults.push({ offset: startOf(alias), message: `It uses anchors more than ${max} times` });
      return visit.BREAK;
    },
  });
  return faults;
}

/** Where in its text a node begins. */
export function startOf(node: Node | null | undefined): number {
  return node?.range?.[0] ?? 0;
}
