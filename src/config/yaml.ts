import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  visit,
  type YAMLMap,
} from "yaml";
import { quoteShort } from "./value-kinds.ts";

/** A text of YAML, of which JSON is a part. */
export interface YamlText {
  readonly document: Document;
  readonly lines: LineCounter;
  /** Why it is not read: the first reason. */
  readonly fault?: { readonly line: number; readonly col: number; readonly message: string };
}

/**
 * Uses of anchors in a document. Anchors inside anchors multiply, so that more could fill the memory; and for each use the parser
 * looks through the whole document.
 */
export const MAX_ALIASES = 10_000;
export const TOO_MANY_ALIASES = `its anchors are used more than ${MAX_ALIASES.toLocaleString("en")} times, those within others counted each time`;

/** Of errors whose own message helps nobody. */
const PLAIN_WORDS: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "a second document begins here, and only one is read",
  // The parser has used up the stack.
  RESOURCE_EXHAUSTION: "it is nested too deeply",
};

/**
 * Only one document is read of a file, whatever the file is.
 * @param options `merge`: `<<` stands for the members of another mapping
 */
export function readYaml(text: string, { merge = false }: { readonly merge?: boolean } = {}): YamlText {
  const lines = new LineCounter();
  // The parser would compare each key with all before it: 5,000 of them took more than a second.
  const options = { lineCounter: lines, prettyErrors: false, merge, uniqueKeys: false } as const;
  const document = parseDocument(text, options);
  const faultAt = (offset: number, message: string) => Object.assign(lines.linePos(offset), { message });
  // Errors after the first mostly follow from it: a file that is no YAML has hundreds.
  const [first, ...others] = [...document.errors, ...document.warnings];
  if (first !== undefined) {
    const { code, message, pos } = first;
    const more = others.length === 0 ? "" : `, and ${others.length.toLocaleString("en")} more`;
    return { document, lines, fault: faultAt(pos[0], PLAIN_WORDS[code] ?? message + more) };
  }
  const [odd] = oddNodes(document);
  if (odd === undefined) return { document, lines };
  return { document, lines, fault: faultAt(startOf(odd.node), odd.message) };
}

/** What the parser reads, although no value of JSON is like it. */
function oddNodes(document: Document): readonly { readonly node: Node; readonly message: string }[] {
  const faults: { node: Node; message: string }[] = [];
  const refuse = (node: Node, message: string): void => void faults.push({ node, message });
  const anchors = new Map<string, Node>();
  let aliases = 0;
  visit(document, (_, node, path) => {
    if (isAlias(node)) {
      const { source } = node;
      aliases += 1;
      if (aliases > MAX_ALIASES) refuse(node, TOO_MANY_ALIASES);
      const repeated = anchors.get(source);
      if (repeated === undefined) refuse(node, `no anchor &${source} stands before this *${source}`);
      else if (path.includes(repeated))
        refuse(node, `*${source} stands within &${source}, which it would repeat without end`);
    } else if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node);
    if (isMap(node))
      for (const key of repeatedKeys(node)) refuse(key, `the key ${quoteShort(key.source)} is here twice`);
    if (!isPair(node)) return;
    const named = (one: unknown): unknown => (isAlias(one) ? (anchors.get(one.source) ?? one) : one);
    const key = named(node.key);
    const fault = keyFault(key);
    if (fault !== undefined) refuse(node.key as Node, fault);
    // The parser makes a symbol of a `<<` that merges.
    if (!isScalar(key) || typeof key.value !== "symbol") return;
    const value = named(node.value);
    const sources = (isSeq(value) ? value.items : [value]).map(named);
    if (sources.every((source) => isMap(source) || isAlias(source))) return;
    refuse((node.value ?? node.key) as Node, "<< takes a mapping, or a list of them");
  });
  return faults;
}

/** Why a key would not be the text that it is in the file: JSON has no other keys. */
function keyFault(key: unknown): string | undefined {
  if (isCollection(key)) return `a key must be a text, and this is ${isSeq(key) ? "a list" : "a mapping"}`;
  if (!isScalar(key) || typeof key.value === "string" || typeof key.value === "symbol") return undefined;
  if (typeof key.value === "number" && String(key.value) === key.source) return undefined;
  return `the key ${key.source || "here"} is no text as it stands; write it in quotes`;
}

function repeatedKeys({ items }: YAMLMap): readonly Scalar[] {
  const seen = new Set<unknown>();
  const keys = items.map(({ key }) => key).filter((key) => isScalar(key));
  return keys.filter(({ source }) => seen.size === seen.add(source).size);
}

/** Where in its text a node begins. */
export function startOf(node: Node | null | undefined): number {
  return node?.range?.[0] ?? 0;
}
