import { dirname } from "node:path";
import { type Document, isAlias, isMap, isScalar, type Node } from "yaml";
import { EvregError } from "../domain/error.ts";
import { nearest } from "../domain/words/nearest.ts";
import { CONFIG_KEYS, KEY_BY_PATH, SECTIONS } from "./keys.ts";
import { SourceValues } from "./values.ts";
import { readYaml, startOf } from "./yaml.ts";

/**
 * Every key of a file, each with its line and column; unknown ones are problems.
 * @throws `usage` when the text is not YAML
 */
export function readFileKeys(file: string, text: string): SourceValues {
  const result = new SourceValues("file", dirname(file));
  const { document, lines, fault } = readYaml(text);
  const at = ({ line, col }: { readonly line: number; readonly col: number }) => `${file}:${line}:${col}`;
  if (fault !== undefined) {
    throw new EvregError("usage", `${at(fault)}: this is not the YAML evreg reads: ${fault.message}`);
  }
  const place = (node: Node | null) => at(lines.linePos(startOf(node)));
  const readMapping = (node: Node | null, section: string): void => {
    const mapping = isAlias(node) ? node.resolve(document) : node;
    if (mapping === null || mapping === undefined || (isScalar(mapping) && mapping.value === null)) return;
    if (!isMap(mapping)) {
      const name = section === "" ? "the file" : section;
      const message = `${name} must be a mapping with the keys ${namesIn(section).join(", ")}`;
      return result.refuse(name, place(node), message);
    }
    for (const { key, value } of mapping.items as { key: Node; value: Node | null }[]) {
      const name = isScalar(key) ? String(key.value) : "?";
      if (section === "" && SECTIONS.has(name)) readMapping(value, name);
      else readKey(section === "" ? name : `${section}.${name}`, section, key, value);
    }
  };
  const readKey = (path: string, section: string, word: Node, value: Node | null): void => {
    const key = KEY_BY_PATH.get(path);
    if (key?.section !== section) {
      return result.refuse(path, place(word), `${path} is not a key of evreg; ${advice(path, section)}`);
    }
    const typed = plain(value, document);
    // `null` is how the example file writes "not set".
    if (typed !== null || key.default !== null) result.add(key, typed, place(value ?? word));
  };
  readMapping(document.contents, "");
  return result;
}

/** The value a node stands for; `undefined`, which no key takes, for aliases that expand without end. */
function plain(node: Node | null, document: Document): unknown {
  try {
    return node === null ? null : (node.toJS(document) as unknown);
  } catch {
    return undefined;
  }
}

function advice(path: string, section: string): string {
  const elsewhere = KEY_BY_PATH.get(path);
  if (elsewhere !== undefined) return `write it as ${elsewhere.name} inside ${elsewhere.section}:`;
  const meant = nearest(path, [...KEY_BY_PATH.keys(), ...SECTIONS]);
  return meant === undefined ? `here it takes ${namesIn(section).join(", ")}` : `did you mean ${meant}?`;
}

function namesIn(section: string): string[] {
  const names = CONFIG_KEYS.filter((key) => key.section === section).map(({ name }) => name);
  return section === "" ? [...names, ...SECTIONS] : names;
}
