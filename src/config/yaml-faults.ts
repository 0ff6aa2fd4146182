import { isScalar, visit, type Document } from "yaml";

/** What its reader is told, so that it leaves the check below to this file. */
export const UNCHECKED_KEYS = { uniqueKeys: false } as const;

/**
 * Uses of anchors in a document, which take time with the number of anchors each; and where anchors hold others, their
 * product. Plenty for defaults that each record takes up, too few to fill a memory.
 */
export const MOST_ALIASES = 10_000;

export interface YamlFault {
  /** Where in the text. */
  readonly offset: number;
  readonly message: string;
}

/**
 * What else is wrong with a document that was read with `UNCHECKED_KEYS`. The reader's own search for keys that stand twice
 * takes time with the square of their number: minutes for 100,000.
 */
export function yamlFaults(document: Document): readonly YamlFault[] {
  const faults: YamlFault[] = [];
  let aliases = 0;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) faults.push({ offset: offsetOf(key), message: "Map keys must be unique" });
        seen.add(key.value);
      }
    },
    Alias(_, alias) {
      aliases += 1;
      if (aliases <= MOST_ALIASES) return undefined;
      const most = MOST_ALIASES.toLocaleString("en");
      faults.push({ offset: offsetOf(alias), message: `It uses anchors more than ${most} times` });
      return visit.BREAK;
    },
  });
  return faults;
}

function offsetOf({ range }: { range?: readonly number[] | null | undefined }): number {
  return range?.[0] ?? 0;
}
