import { dirname } from "node:path";
import { type Document, isAlias, isMap, isScalar, type Node } from "yaml";
import { nearest } from "../domain/words/nearest.ts";
import type { ConfigFile } from "./file.ts";
import { KEY_BY_PATH, SECTIONS } from "./keys.ts";
import { SourceValues } from "./values.ts";
import { startOf } from "./yaml.ts";

/** Every key of the file, each with its line and column; unknown ones are problems. */
export function readFileKeys(file: ConfigFile): SourceValues {
  const result = new SourceValues("file", dirname(file.path));
  if (file.parsed === undefined) return result;
  const { document, lines } = file.parsed;

  const place = (node: Node | null): string => {
    const { line, col } = lines.linePos(startOf(node));
    return `${file.path}:${line}:${col}`;
  };

  const readMapping = (node: Node | null, section: string): void => {
    const mapping = isAlias(node) ? node.resolve(document) : node;
    if (mapping === null || mapping === undefined || (isScalar(mapping) && mapping.value === null)) return;
    if (!isMap(mapping)) {
      const name = section === "" ? "the file" : section;
      const message = `${name} must be a mapping with the keys ${keysOf(section).join(", ")}`;
      return result.refuse(name, place(node), message);
    }
    for (const { key: keyNode, value } of mapping.items as { key: Node; value: Node | null }[]) {
      const word = isScalar(keyNode) ? String(keyNode.value) : "?";
      if (section === "" && SECTIONS.has(word)) readMapping(value, word);
      else readKey(section === "" ? word : `${section}.${word}`, section, keyNode, value);
    }
  };

  const readKey = (path: string, section: string, keyNode: Node, value: Node | null): void => {
    const key = KEY_BY_PATH.get(path);
    if (key === undefined || (section === "" && path.includes("."))) {
      return result.refuse(path, place(keyNode), `${path} is not a key of evreg; ${advice(path, section)}`);
    }
    const typed = plain(value, document);
    // `null` is how the example file writes "not set".
    if (typed !== null || key.default !== null) result.add(key, typed, place(value ?? keyNode));
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
