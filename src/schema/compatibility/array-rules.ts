import { Case } from "./case.ts";
import { factsOf } from "./facts.ts";
import type { Goal, Prover, Showing, KeywordRule } from "./goal.ts";
import { itemShape } from "./shape.ts";
import type { Shape } from "./shape.ts";
import { TYPE } from "./types.ts";

/** What a schema says about lists: the places told apart by some schema, and all that come after them. */
export function* arrayTasks(right: Shape): Generator<KeywordRule> {
  if (right.keywords.includes("items")) {
    if (right.tuple === undefined) yield { keyword: "items", holds: placesHold(0, Infinity) };
    for (const index of right.tuple?.keys() ?? []) {
      yield { keyword: "items", part: index, holds: placesHold(index, index + 1) };
    }
  }
  if (right.keywords.includes("additionalItems")) {
    yield { keyword: "additionalItems", holds: placesHold(right.tuple!.length, Infinity) };
  }
  if (right.contains !== undefined) yield { keyword: "contains", holds: containsOne };
}

function placesHold(from: number, to: number): KeywordRule["holds"] {
  return function* (goal, prover) {
    const { left, right } = goal;
    const { types, maxItems } = factsOf(left);
    if ((types & TYPE.array) === 0) return true;
    // One place after the last that any schema tells apart stands for all the rest.
    const looking = [...left.shapes, ...goal.view.shapes];
    const told = Math.max(from, ...looking.map(({ tuple }) => tuple?.length ?? 0));
    const end = Math.min(to, told + 1, maxItems);
    for (let index = from; index < end; index++) {
      if (!(yield* prover.prove(prover.item(goal, index, itemShape(right, index)!)))) return false;
    }
    return true;
  };
}

const MAX_PLACES_TRIED = 8;

/** Some item must be shown to be one, whatever the list: one the left side asks for too, or the first where all are. */
function* containsOne(goal: Goal, prover: Prover): Showing {
  const { left, right } = goal;
  const { types, minItems } = factsOf(left);
  if ((types & TYPE.array) === 0) return true;
  const inner = right.contains!;
  const tried = (one: Goal): Showing => prover.prove({ ...one, findings: [] });
  for (let index = 0; index < Math.min(minItems, MAX_PLACES_TRIED); index++) {
    if (yield* tried(prover.item(goal, index, inner))) return true;
  }
  // It may stand anywhere, so only what holds at every place is known of it.
  const everywhere = left.shapes.flatMap(({ items }) => items ?? []);
  const strict = goal.strict || goal.view.shapes.some(({ tuple }) => tuple !== undefined);
  for (const { contains } of left.shapes) {
    if (contains === undefined) continue;
    const one = new Case({ all: [contains, ...everywhere] });
    if (yield* tried(prover.item({ ...goal, strict }, 0, inner, one))) return true;
  }
  return false;
}
