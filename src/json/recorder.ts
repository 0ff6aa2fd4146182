import type { JsonKind, JsonNode } from "./node.ts";

/** A node whose end and children are still to come. */
export interface OpenNode extends JsonNode {
  end: number;
  count: number;
  children: OpenNode[];
}

const NO_CHILDREN: OpenNode[] = [];

/** Keeps the parts of a document its scan was asked for: so many children in each container of the upper levels. */
export class Recorder {
  /** Levels of containers whose children are recorded. */
  readonly levels: number;
  readonly #most: readonly number[];
  root: OpenNode | undefined;
  /** Name of the member whose value comes next. */
  name: string | undefined;

  constructor(most: readonly number[]) {
    this.#most = most;
    this.levels = most.length;
  }

  /** Whether the next child of that parent is recorded. `depth` is how many containers are open around it. */
  takes(parent: OpenNode | undefined, depth: number): parent is OpenNode {
    return parent !== undefined && depth <= this.levels && parent.children.length < this.#most[depth - 1]!;
  }

  /** Counts the value in its parent, and records it there when that is asked for. */
  add(
    parent: OpenNode | undefined,
    depth: number,
    kind: JsonKind,
    start: number,
    end: number,
  ): OpenNode | undefined {
    if (depth > this.levels) return undefined;
    if (parent !== undefined) parent.count++;
    if (depth > 0 && !this.takes(parent, depth)) return undefined;
    const container = kind === "object" || kind === "array";
    const name = parent?.kind === "object" ? this.name : undefined;
    const node: OpenNode = { kind, start, end, name, count: 0, children: container ? [] : NO_CHILDREN };
    if (parent === undefined) this.root = node;
    else parent.children.push(node);
    return node;
  }
}
