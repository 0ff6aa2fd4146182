import { dirname } from "node:path";
import { type Document, isAlias, isMap, isScalar, type LineCounter, type Node, visit } from "yaml";
import { CONFIG_KEYS, KEY_BY_PATH, SECTIONS } from "./schema.ts";
import { noValues, type SourceValues, nearest, addValue } from "./values.ts";

/** Every key of the file, each with its line and column; unknown ones are problems. */
export function readFileKeys(file: ConfigFile): SourceValues {
  const result = noValues();
  if (file.parsed === undefined) return result;
  const { document, lines } = file.parsed;

  const place = (node: Node | null): string => {
    const start = node?.range?.[0] ?? 0;
    const { line, col } = lines.linePos(start);
    return `${file.path}:${line}:${col}`;
  };

  const readMapping = (node: Node | null, section: string): void => {
    const mapping = resolved(node, document);
    if (mapping === null || (isScalar(mapping) && mapping.value === null)) return;
    if (!isMap(mapping)) {
      const name = section === "" ? "the file" : section;
      const message = `${name} must be a mapping with the keys ${keysOf(section).join(", ")}`;
      result.problems.push({ name, place: place(node), message });
      return;
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
      const message = `${path} is not a key of evreg; ${advice(path, section)}`;
      result.problems.push({ name: path, place: place(keyNode), message });
      return;
    }
    const given = plain(value, document);
    // `null` is how the example file writes "not set".
    if (given === null && key.default === null) return;
    addValue(result, key, given, {
      source: "file",
      place: place(value ?? keyNode),
      base: dirname(file.path),
    });
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

function resolved(node: Node | null, document: Document): Node | null {
  return isAlias(node) ? (node.resolve(document) ?? null) : node;
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
  if (section === "") {
    return [...CONFIG_KEYS.map((key) => key.path).filter((path) => !path.includes(".")), ...SECTIONS];
  }
  return CONFIG_KEYS.map((key) => key.path)
    .filter((path) => path.startsWith(`${section}.`))
    .map((path) => path.slice(section.length + 1));
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

/** An option of its reader, which then leaves the check below to this file. */
export const UNCHECKED_KEYS = { uniqueKeys: false } as const;

/**
 * Uses of anchors in a document, which take time with the number of anchors each; and where anchors hold others, their
 * product. Plenty for defaults that each record takes up, too few to fill a memory.
 */
export const MAX_ALIASES = 10_000;

export interface YamlFault {
  /** Where in the text. */
  readonly offset: number;
  readonly message: string;
}

/**
 * What else is wrong with a document that was read with `UNCHECKED_KEYS`. The reader's own search for keys that stand twice
 * takes time with the square of their number: minutes for 100,000.
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

function offsetOf({ range }: { range?: readonly number[] | null | undefined }): number {
  return range?.[0] ?? 0;
}
