import { expect, test } from "vitest";
import { parseFile } from "../../src/cli/registry/documents.ts";
import { pointerSteps } from "../../src/json/field-path.ts";

function lineOf(text: string, pointer: string): number | undefined {
  const document = parseFile("schema", Buffer.from(text));
  return "problem" in document ? undefined : document.lineOf(pointerSteps(pointer));
}

const JSON_TEXT = `{
\t"type": "object",
\t"required": [
\t\t"id",
\t\t"note"
\t],
\t"properties": {
\t\t"id": { "type": "string" },
\t\t"a/b": {
\t\t\t"anyOf": [{ "minLength": 1 },
\t\t\t\t{ "maxLength": 9 }]
\t\t}
\t}
}
`;

const YAML_TEXT = `# the schema of a test
type: object
required: [id]
definitions:
  name: &name
    type: string
    minLength: 1
properties:
  id: *name
  7:
    anyOf:
      - type: string
      - type: integer
`;

test.each([
  ["", 1],
  ["/type", 2],
  ["/required", 3],
  ["/required/1", 5],
  ["/properties/id/type", 8],
  ["/properties/a~1b", 9],
  ["/properties/a~1b/anyOf/1/maxLength", 11],
  ["/properties/gone/type", 7],
  ["/required/9", 3],
  ["/type/deeper", 2],
  ["/nowhere", 1],
])("%j begins on line %i of the JSON", (pointer, line) => {
  expect(lineOf(JSON_TEXT, pointer)).toBe(line);
});

test.each([
  ["/type", 2],
  ["/required/0", 3],
  ["/properties/id", 9],
  ["/properties/id/minLength", 7],
  ["/properties/7/anyOf/1/type", 13],
  ["/properties/8", 8],
])("%j begins on line %i of the YAML", (pointer, line) => {
  expect(lineOf(YAML_TEXT, pointer)).toBe(line);
});
