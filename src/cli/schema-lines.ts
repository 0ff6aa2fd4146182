import { isAlias, isMap, isSeq, LineCounter, parseDocument } from "yaml";
import type { Node, ParsedNode } from "yaml";
import { pointerSteps } from "../schema/field-path.ts";

/**
 * The line, from 1, on which the place of a JSON pointer begins in a schema's source: that of its name, for a member. Of a
 * place that is not there, the line of the nearest one around it.
 * @param source JSON or YAML, of which JSON is a part
 */
export function lineFinder(source: string): (pointer: string) => number {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines });
  return (pointer) => {
    let node: unknown = document.contents;
    let start = startOf(node) ?? 0;
    for (const step of pointerSteps(pointer)) {
      const target: unknown = isAlias(node) ? node.resolve(document) : node;
      if (isMap(target)) {
        const pair = target.items.find(
          ({ key }) => String((key as { value?: unknown } | null)?.value) === step,
        );
        if (pair === undefined) break;
        start = startOf(pair.key) ?? start;
        node = pair.value;
      } else if (isSeq(target)) {
        if (target.items[Number(step)] === undefined) break;
        node = target.items[Number(step)];
        start = startOf(node) ?? start;
      } else break;
    }
    return Math.max(1, lines.linePos(start).line);
  };
}

function startOf(node: unknown): number | undefined {
  return (node as Partial<Node | ParsedNode> | null)?.range?.[0];
}
