import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments, parseDocument } from "yaml";
import type { Document, Pair, Scalar, YAMLError, YAMLMap } from "yaml";
import { MOST_ALIASES, UNCHECKED_KEYS, yamlFaults } from "../../config/yaml-faults.ts";
import { EvregError } from "../../domain/error.ts";
import { parseJson } from "../../json/parse.ts";
import type { FieldPath } from "../../schema/field-path.ts";
import { textFault } from "../text-fault.ts";

/** One document of a file: a JSON value, and where in the file each part of it stands. */
export interface ParsedDocument {
  readonly value: unknown;
  /** `shop.yaml:12`; of what is not there, the line of what it would be in. */
  readonly place: (path: FieldPath) => string;
}

/** A mistake in a file, with its place. */
export interface Problem {
  readonly place: string;
  readonly message: string;
}

/** Levels of a value; a payload's limit with what a file puts around it. */
const MOST_LEVELS = 100;

/**
 * The documents of a YAML or JSON file. JSON goes by the rules of a request's body: no key twice, nothing behind its end.
 * @param name as it is told to a person
 * @returns problems in its syntax, and the documents only if there are none
 */
export function parseDocuments(
  name: string,
  bytes: Uint8Array,
): { documents: ParsedDocument[]; problems: Problem[] } {
  const message = textFault(bytes);
  if (message !== undefined) return { documents: [], problems: [{ place: name, message }] };
  const text = Buffer.from(bytes).toString("utf8");
  const isJson = /\.json$/i.test(name) || (!/\.ya?ml$/i.test(name) && /^\s*[{[]/.test(text));
  return isJson ? jsonDocument(name, bytes, text) : yamlDocuments(name, text);
}

function jsonDocument(name: string, bytes: Uint8Array, text: string): ReturnType<typeof parseDocuments> {
  try {
    const value = parseJson(bytes);
    let places: ((path: FieldPath) => string) | undefined;
    const place = (path: FieldPath): string => {
      // JSON is YAML too, whose reader knows lines; it takes its time, and most files have no mistakes.
      places ??= placesIn(name, text);
      return places(path);
    };
    return { documents: [{ value, place }], problems: [] };
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    const line = error.details["line"];
    const place = typeof line === "number" ? `${name}:${line}` : name;
    return { documents: [], problems: [{ place, message: error.message }] };
  }
}

function placesIn(name: string, text: string): (path: FieldPath) => string {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, ...UNCHECKED_KEYS });
  return (path) => placeOf(name, document, lines, path);
}

function yamlDocuments(name: string, text: string): ReturnType<typeof parseDocuments> {
  const lines = new LineCounter();
  const parsed: readonly Document[] = [
    parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, merge: true, ...UNCHECKED_KEYS }),
  ].flat();
  const faults = [
    ...firstOf(parsed.flatMap(({ errors, warnings }) => [...errors, ...warnings])),
    ...parsed.flatMap(yamlFaults),
  ];
  const problems = faults.map(({ offset, message }) => ({
    place: `${name}:${lines.linePos(offset).line}`,
    message: `this is not the YAML evreg reads: ${message}`,
  }));
  if (problems.length > 0) return { documents: [], problems };
  const documents: ParsedDocument[] = [];
  for (const document of parsed) {
    const place = (path: FieldPath): string => placeOf(name, document, lines, path);
    try {
      const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES });
      const odd = notJson(value, []);
      if (odd !== undefined) problems.push({ place: place(odd), message: "must be a value that JSON has" });
      // Each its own copy of what an anchor stands for, and 0 for -0, as the service will have it.
      else documents.push({ value: JSON.parse(JSON.stringify(value)) as unknown, place });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      problems.push({ place: place([]), message: `this is not the YAML evreg reads: ${message}` });
    }
  }
  return { documents: problems.length > 0 ? [] : documents, problems };
}

/** What the parser says behind its first error mostly follows from that: a file that is no YAML has hundreds. */
function firstOf(errors: readonly YAMLError[]): readonly { offset: number; message: string }[] {
  const [first, ...others] = errors;
  if (first === undefined) return [];
  const more = others.length === 0 ? "" : `, and ${others.length.toLocaleString("en")} more`;
  return [{ offset: first.pos[0], message: `${first.message}${more}` }];
}

/** The first part that is no JSON: `.nan`, `!!binary`, an alias of what it stands in. */
function notJson(value: unknown, path: FieldPath): FieldPath | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : path;
  if (typeof value !== "object" || path.length > MOST_LEVELS) return path;
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return path;
  for (const [step, inner] of Object.entries(value)) {
    const odd = notJson(inner, [...path, Array.isArray(value) ? Number(step) : step]);
    if (odd !== undefined) return odd;
  }
  return undefined;
}

/** Members by their names: a document with many is asked for the place of each. */
const pairs = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>();

function pairsOf(map: YAMLMap): ReadonlyMap<string, Pair> {
  let known = pairs.get(map);
  if (known === undefined) {
    const named = map.items.filter(({ key }) => isScalar(key));
    known = new Map(named.map((pair) => [String((pair.key as Scalar).value), pair]));
    pairs.set(map, known);
  }
  return known;
}

function placeOf(name: string, document: Document, lines: LineCounter, path: FieldPath): string {
  let node: unknown = document.contents;
  let offset = document.contents?.range?.[0] ?? 0;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = pairsOf(node).get(String(step));
      if (pair === undefined) break;
      offset = (isScalar(pair.key) ? pair.key.range?.[0] : undefined) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      if (node === undefined) break;
      offset = (node as { range?: readonly number[] }).range?.[0] ?? offset;
    } else break;
  }
  return `${name}:${lines.linePos(offset).line}`;
}
