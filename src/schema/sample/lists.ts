import { refillBudget } from "../budget.ts";
import { canonicalText } from "../canonical.ts";
import type { SchemaNode } from "../document.ts";
import { childrenOf } from "../node-children.ts";
import type { Demands } from "./demands.ts";
import { NO_VALUE } from "./making.ts";
import type { Making } from "./making.ts";

/** Items beyond the least number. */
const MORE_ITEMS = 2;
/** Tries at an item that is not there yet. */
const UNIQUE_TRIES = 12;

/** A list of few items; one with a list of places has all of those places where it may. */
export function listFor(demands: Demands, making: Making, depth: number): unknown {
  const values = (keyword: string): number[] =>
    demands.schemas.map((schema) => schema[keyword]).filter((value) => typeof value === "number");
  const contained = demands.nodes.flatMap((node) => childrenOf(node).one("contains") ?? []);
  const least = Math.max(0, contained.length > 0 ? 1 : 0, ...values("minItems"));
  const most = Math.min(Infinity, ...values("maxItems"));
  if (least > most) return NO_VALUE;
  making.effort.spend(least);
  const length = Math.min(most, lengthOf(demands, making, depth, Math.max(least, contained.length)));
  const unique = demands.schemas.some((schema) => schema["uniqueItems"] === true);
  const items: unknown[] = [];
  const texts = new Set<string>();
  for (let index = 0; index < length; index++) {
    const nodes = nodesAt(demands.nodes, index);
    const wanted = contained[index];
    if (wanted !== undefined) nodes.push(wanted);
    const item = unique
      ? newItem(() => making.value(nodes, depth + 1), texts, making)
      : making.value(nodes, depth + 1);
    if (item === NO_VALUE) {
      // A place that nothing can take ends the list.
      if (index < least || index < contained.length) return NO_VALUE;
      break;
    }
    items.push(item);
  }
  return items;
}

function lengthOf({ nodes }: Demands, making: Making, depth: number, least: number): number {
  if (making.isTerse(depth)) return least;
  const places = Math.max(0, ...nodes.map((node) => childrenOf(node).list("items").length));
  if (places > 0) return Math.max(least, places);
  return making.random.whole(Math.max(least, 1), least + MORE_ITEMS);
}

/** What the item at an index must conform to. */
function nodesAt(nodes: readonly SchemaNode[], index: number): SchemaNode[] {
  return nodes.flatMap((node) => {
    const children = childrenOf(node);
    const each = children.one("items");
    if (each !== undefined) return each;
    const places = children.list("items");
    // Without a list of places, additionalItems means nothing.
    if (places.length === 0) return [];
    return places[index] ?? children.one("additionalItems") ?? [];
  });
}

function newItem(make: () => unknown, texts: Set<string>, making: Making): unknown {
  for (let tries = 0; tries < UNIQUE_TRIES; tries++) {
    const item = make();
    if (item === NO_VALUE) return NO_VALUE;
    refillBudget();
    const text = canonicalText(item);
    making.effort.spend(1 + (text.length >> 4));
    if (texts.has(text)) continue;
    texts.add(text);
    return item;
  }
  return NO_VALUE;
}
