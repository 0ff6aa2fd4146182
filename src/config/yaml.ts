import { dirname } from "node:path";
import { type Document, isAlias, isMap, isScalar, type LineCounter, type Node, visit } from "yaml";
import { KEY_BY_PATH, SECTIONS } from "./schema.ts";
import { noValues, type SourceValues, addValue } from "./values.ts";
import { nearest } from "../domain/words/nearest.ts";

/** The parser, which is loaded with this module alone: most commands read no YAML. */
export { LineCounter, parseDocument } from "yaml";

/** Every key of the file, each with its line and column; unknown ones are problems. */
export function readFileKeys(file: ConfigFile): SourceValues {
  const result = noValues();
  if (file.parsed === undefined) return result;
  const { document, lines } = file.parsed;

  const refuse = (name: string, node: Node | null, message: string): void => {
    result.problems.push({ name, place: place(node), message });
  };
  const place = (node: Node | null): string => {
    const { line, col } = lines.linePos(offsetOf(node));
    return `${file.path}:${line}:${col}`;
  };

  const readMapping = (node: Node | null, section: string): void => {
    const mapping = isAlias(node) ? node.resolve(document) : node;
    if (mapping === null || mapping === undefined || (isScalar(mapping) && mapping.value === null)) return;
    if (!isMap(mapping)) {
      const name = section === "" ? "the file" : section;
      return refuse(name, node, `${name} must be a mapping with the keys ${keysOf(section).join(", ")}`);
    }
    for (const { key: keyNode, value } of mapping.items as { key: Node; value: Node | null }[]) {
      const word = isScalar(keyNode) ? String(keyNode.value) : "?";
      const path = section === "" ? word : `${section}.${word}`;
      if (section === "" && SECTIONS.has(word)) readMapping(value, word);
      else readKey(path, section, keyNode, value);
    }
  };

  const readKey = (path: string, section: string, keyNode: Node, value: Node | null): void => {
    const key = KEY_BY_PATH.get(path);
    if (key === undefined || (section === "" && path.includes("."))) {
      return refuse(path, keyNode, `${path} is not a key of evreg; ${advice(path, section)}`);
    }
    const given = plain(value, document);
    // `null` is how the example file writes "not set".
    if (given === null && key.default === null) return;
    const base = dirname(file.path);
    addValue(result, key, given, { source: "file", place: place(value ?? keyNode), base });
  };

  readMapping(document.contents, "");
  return result;
}

/** The value a node stands for; `undefined`, which no key takes, for aliases that cannot be followed or expand without end. */
function plain(node: Node | null, document: Document): unknown {
  try {
    return node === null ? null : (node.toJS(document) as unknown);
  } catch {
    return undefined;
  }
}

function advice(path: string, section: string): string {
  if (section === "" && KEY_BY_PATH.has(path)) {
    const [outer = "", inner = ""] = path.split(".");
    return `write it as ${inner} inside ${outer}:`;
  }
  const meant = nearest(path, [...KEY_BY_PATH.keys(), ...SECTIONS]);
  return meant === undefined ? `here it takes ${keysOf(section).join(", ")}` : `did you mean ${meant}?`;
}

function keysOf(section: string): string[] {
  const paths = [...KEY_BY_PATH.keys()];
  if (section === "") return [...paths.filter((path) => !path.includes(".")), ...SECTIONS];
  return paths.filter((path) => path.startsWith(`${section}.`)).map((path) => path.slice(section.length + 1));
}

/** A configuration file as read: nothing in it is checked yet beyond being YAML. */
export interface ConfigFile {
  /** Absolute. */
  readonly path: string;
  /** `undefined` for an empty file. */
  readonly parsed: { readonly document: Document; readonly lines: LineCounter } | undefined;
  /** True for a `config.yaml` beside the data folder, whose name another program may use as well. */
  readonly generic: boolean;
}

/** For the YAML reader: `yamlFaults` finds duplicate keys instead. */
export const UNCHECKED_KEYS = { uniqueKeys: false } as const;

/** Uses of anchors in a document. Anchors inside anchors multiply, so that more could fill the memory. */
export const MAX_ALIASES = 10_000;

export interface YamlFault {
  /** Where in the text. */
  readonly offset: number;
  readonly message: string;
}

/**
 * What else is wrong with a document that was read with `UNCHECKED_KEYS`. The reader's own search for duplicate keys takes
 * minutes for 100,000 of them, as its time grows with the square of their number.
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
      if (aliases <= MAX_ALIASES) return undefined;
      const max = MAX_ALIASES.toLocaleString("en");
      faults.push({ offset: offsetOf(alias), message: `It uses anchors more than ${max} times` });
      return visit.BREAK;
    },
  });
  return faults;
}

function offsetOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}
