import { dirname } from "node:path";
import { type Document, isAlias, isMap, isScalar, type Node } from "yaml";
import { EvregError } from "../domain/error.ts";
import { nearest } from "../domain/words/nearest.ts";
import { KEY_BY_PATH, SECTIONS } from "./keys.ts";
import { SourceValues } from "./values.ts";
import { readYaml, startOf } from "./yaml.ts";

/**
 * Every key of a file, each with its line and column; unknown ones are problems.
 * @throws `usage` when the text is not YAML
 */
export function readFileKeys(path: string, text: string): SourceValues {
  const result = new SourceValues("file", dirname(path));
  const { documents, lines, faults } = readYaml(text);
  const [fault] = faults;
  if (fault !== undefined) {
    const { line, col, message } = fault;
    throw new EvregError("usage", `${path}:${line}:${col}: this is not the YAML evreg reads: ${message}`);
  }
  const document = documents[0]!;

  const place = (node: Node | null): string => {
    const { line, col } = lines.linePos(startOf(node));
    return `${path}:${line}:${col}`;
  };
  const readMapping = (node: Node | null, section: string): void => {
    const mapping = isAlias(node) ? node.resolve(document) : node;
    if (mapping === null || mapping === undefined || (isScalar(mapping) && mapping.value === null)) return;
    if (!isMap(mapping)) {
      const name = section === "" ? "the file" : section;
      const message = `${name} must be a mapping with the keys ${keysOf(section).join(", ")}`;
      return result.refuse(name, place(node), message);
    }
    for (const { key, value } of mapping.items as { key: Node; value: Node | null }[]) {
      const word = isScalar(key) ? String(key.value) : "?";
      if (section === "" && SECTIONS.has(word)) readMapping(value, word);
      else readKey(section === "" ? word : `${section}.${word}`, section, key, value);
    }
  };
  const readKey = (name: string, section: string, word: Node, value: Node | null): void => {
    const key = KEY_BY_PATH.get(name);
    if (key === undefined || (section === "" && name.includes("."))) {
      return result.refuse(name, place(word), `${name} is not a key of evreg; ${advice(name, section)}`);
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

function advice(name: string, section: string): string {
  if (section === "" && KEY_BY_PATH.has(name)) {
    const [outer = "", inner = ""] = name.split(".");
    return `write it as ${inner} inside ${outer}:`;
  }
  const meant = nearest(name, [...KEY_BY_PATH.keys(), ...SECTIONS]);
  return meant === undefined ? `here it takes ${keysOf(section).join(", ")}` : `did you mean ${meant}?`;
}

function keysOf(section: string): string[] {
  const names = [...KEY_BY_PATH.keys()];
  if (section === "") return [...names.filter((name) => !name.includes(".")), ...SECTIONS];
  return names.filter((name) => name.startsWith(`${section}.`)).map((name) => name.slice(section.length + 1));
}
