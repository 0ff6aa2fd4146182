export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** A range of bytes: `start` is the first, `end` the one after the last. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
}

/** One value of a scanned document: what it is and where its bytes are. Nothing in it has been parsed. */
export interface JsonNode extends JsonSpan {
  readonly kind: JsonKind;
  /** Where the member's name is, between its quotes, when the value is a member of an object; else -1. */
  readonly nameStart: number;
  readonly nameEnd: number;
  /** How many members or items it has, recorded or not; 0 for a value that is no container. */
  readonly count: number;
  /** The members or items that were recorded, in order; empty below the recorded levels. */
  readonly children: readonly JsonNode[];
}

/** The text of a range of bytes. */
function decoded(bytes: Uint8Array, start: number, end: number): string {
  // What comes from a socket is a Buffer already, and another view on it would cost more than short texts do.
  if (Buffer.isBuffer(bytes)) return bytes.toString("utf8", start, end);
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8");
}

/** A key or another string with its escapes resolved, from the span between its quotes. */
export function keyText(bytes: Uint8Array, start: number, end: number): string {
  const text = decoded(bytes, start, end);
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}

/** A member's name, escapes resolved. */
export function nameOf(bytes: Uint8Array, member: JsonNode): string {
  return keyText(bytes, member.nameStart, member.nameEnd);
}

/** The first recorded member of that name. */
export function memberOf(bytes: Uint8Array, node: JsonNode, name: string): JsonNode | undefined {
  return node.children.find((child) => nameOf(bytes, child) === name);
}

/** The bytes of a value, as a view on the document (no copy). */
export function bytesOf(bytes: Uint8Array, span: JsonSpan): Uint8Array {
  return bytes.subarray(span.start, span.end);
}

/** The value's source text. */
export function textOf(bytes: Uint8Array, { start, end }: JsonSpan): string {
  return decoded(bytes, start, end);
}

/** A node whose end and children are still to come. */
interface OpenNode extends JsonNode {
  end: number;
  nameStart: number;
  nameEnd: number;
  count: number;
  children: OpenNode[];
}

const NO_CHILDREN: OpenNode[] = [];

/** Records parts of a document: so many children of each container in the upper levels. */
export class Recorder {
  /** Levels of containers whose children are recorded; nothing deeper is passed to the recorder. */
  readonly levels: number;
  readonly #maxChildren: readonly number[];
  /** The open containers by depth, the root at 1, as far as they are recorded. */
  readonly #open: (OpenNode | undefined)[] = [];
  root: JsonNode | undefined;

  constructor(maxChildren: readonly number[]) {
    this.#maxChildren = maxChildren;
    this.levels = maxChildren.length;
  }

  /** Whether the next child is recorded of the container that is open at that depth. */
  records(depth: number): boolean {
    const parent = this.#open[depth];
    return (
      parent !== undefined && depth <= this.levels && parent.children.length < this.#maxChildren[depth - 1]!
    );
  }

  /**
   * Counts a value in its parent, and records it there where it is to be.
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
    if (depth > 0 && !this.records(depth)) return undefined;
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

  /** Adds a container, whose children follow. */
  open(depth: number, kind: JsonKind, start: number, nameStart: number, nameEnd: number): void {
    this.#open[depth + 1] = this.add(depth, kind, start, start, nameStart, nameEnd);
  }

  /** @param depth how many containers are open around it */
  close(depth: number, end: number): void {
    const node = this.#open[depth + 1];
    if (node !== undefined) node.end = end;
  }
}
