import type { SchemaBreak } from "../../domain/compatibility.ts";
import { shortened } from "../failure.ts";
import { pointerTo } from "../field-path.ts";
import type { Finding } from "./goal.ts";
import { messageFor, remedyFor } from "./sentences.ts";
import type { Shape } from "./shape.ts";

export type Side = SchemaBreak["side"];

/** A payload longer than this as JSON shows nothing to a person. */
const MAX_EXAMPLE_CHARACTERS = 4_096;

/** What a finding says, put the way a person looks at it: old and new instead of left and right. */
export interface Told {
  readonly side: Side;
  readonly keyword: string;
  readonly finding: Finding;
  readonly old: Shape | undefined;
  readonly next: Shape | undefined;
  readonly was: unknown;
  readonly is: unknown;
}

export function breakOf(side: Side, finding: Finding, payload: { value: unknown } | undefined): SchemaBreak {
  const told = tell(side, finding);
  const { was, is } = told;
  const isShort = payload !== undefined && JSON.stringify(payload.value).length <= MAX_EXAMPLE_CHARACTERS;
  return {
    side,
    pointer: pointerFor(told),
    ...(was === undefined ? {} : { was: shortened(was) }),
    ...(is === undefined ? {} : { is: shortened(is) }),
    message: messageFor(told, payload !== undefined),
    remedy: remedyFor(told),
    certainty: payload === undefined ? "cannot_prove" : "proven",
    ...(isShort ? { example: payload.value } : {}),
  };
}

/** What two findings share that are one to a person. */
export function breakKey(side: Side, finding: Finding): string {
  const { keyword, part = "", right } = finding;
  return `${side} ${right.pointer} ${keyword} ${part}`;
}

function tell(side: Side, finding: Finding): Told {
  const { right, keyword, part, place } = finding;
  const shapes = place.left.shapes.filter(({ side: of }) => of !== right.side);
  const left =
    shapes.find((shape) => shape.pointer === right.pointer && shape.keywords.includes(keyword)) ??
    shapes.find((shape) => shape.keywords.includes(keyword)) ??
    shapes.find((shape) => shape.pointer === right.pointer) ??
    shapes[0];
  const [old, next] = side === "producer" ? [left, right] : [right, left];
  const value = (shape: Shape | undefined): unknown => {
    if (shape === undefined || typeof shape.schema === "boolean") return shape?.schema;
    if (finding.isGone === true) return shape.properties.get(String(part))?.schema;
    return keyword === "false" ? shape.schema : shape.schema[keyword];
  };
  return { side, keyword, finding, old, next, was: value(old), is: value(next) };
}

function pointerFor({ keyword, finding, old, next, is }: Told): string {
  const { part, right, isGone } = finding;
  if (isGone === true) {
    const owner = [old, ...finding.place.left.shapes].find((shape) => shape?.properties.has(String(part)));
    if (owner !== undefined && owner.side === "old") {
      return pointerTo(pointerTo(owner.pointer, "properties"), String(part));
    }
  }
  if (keyword === "false") return right.pointer;
  const owner = is === undefined ? (old ?? right) : (next ?? right);
  const pointer = pointerTo(owner.pointer, keyword);
  if (isGone === true || part === undefined || keyword === "required" || keyword === "anyOf") return pointer;
  return pointerTo(pointer, part);
}
