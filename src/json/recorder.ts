import type { JsonNode } from "./node.ts";
import type { JsonKind } from "./tokens.ts";

/** A node whose end and children are still to come. */
interface OpenNode extends JsonNode {
  end: number;
  nameStart: number;
  nameEnd: number;
  count: number;
  children: OpenNode[];
}

const NO_CHILDREN: OpenNode[] = [];

/** Keeps the parts of a document its scan was asked for: so many children in each container of the upper levels. */
export class Recorder {
  /** Levels of containers whose children are recorded; what lies deeper need not be told to the recorder. */
  readonly levels: number;
  readonly #most: readonly number[];
  /** The open containers by depth, the root at 1, as far as they are recorded. */
  readonly #open: (OpenNode | undefined)[] = [];
  root: JsonNode | undefined;

  constructor(most: readonly number[]) {
    this.#most = most;
    this.levels = most.length;
  }

  /** Whether the next child is recorded of the container that is open at that depth. */
  takes(depth: number): boolean {
    const parent = this.#open[depth];
    return parent !== undefined && depth <= this.levels && parent.children.length < this.#most[depth - 1]!;
  }

  /**
   * Counts a value in its parent, and records it there when that is asked for.
   * @param depth how many containers are open around it, at most `levels`
   * @param nameStart place of the first byte of its name, when its parent is an object
   */
  add(
    depth: number,
    kind: JsonKind,
    start: number,
    end: number,
    nameStart: number,
    nameEnd: number,
  ): OpenNode | undefined {
    const parent = this.#open[depth];
    if (parent !== undefined) parent.count++;
    if (depth > 0 && !this.takes(depth)) return undefined;
    const container = kind === "object" || kind === "array";
    const children = container ? [] : NO_CHILDREN;
    const node: OpenNode = { kind, start, end, nameStart: -1, nameEnd: -1, count: 0, children };
    if (parent?.kind === "object") {
      node.nameStart = nameStart;
      node.nameEnd = nameEnd;
    }
    if (parent === undefined) this.root = node;
    else parent.children.push(node);
    return node;
  }

  /** The same for a container, whose children follow. */
  open(depth: number, kind: JsonKind, start: number, nameStart: number, nameEnd: number): void {
    this.#open[depth + 1] = this.add(depth, kind, start, start, nameStart, nameEnd);
  }

  /** @param depth how many containers are open around it */
  close(depth: number, end: number): void {
    const node = this.#open[depth + 1];
    if (node !== undefined) node.end = end;
  }
}
