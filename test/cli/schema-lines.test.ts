import { expect, test } from "vitest";
import { lineFinder } from "../../src/cli/registry/documents.ts";
import { annotationLine } from "../../src/commands/action-check.ts";

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
  expect(lineFinder(JSON_TEXT)(pointer)).toBe(line);
});

test.each([
  ["/type", 2],
  ["/required/0", 3],
  ["/properties/id", 9],
  ["/properties/id/minLength", 7],
  ["/properties/7/anyOf/1/type", 13],
  ["/properties/8", 8],
])("%j begins on line %i of the YAML", (pointer, line) => {
  expect(lineFinder(YAML_TEXT)(pointer)).toBe(line);
});

test("an annotation is one line, whatever is in the message", () => {
  const annotation = {
    level: "error",
    file: "a,b:c.json",
    line: 7,
    title: "50%",
    message: "x,\r\ny: 1%",
  } as const;
  expect(annotationLine(annotation)).toBe(
    "::error file=a%2Cb%3Ac.json,line=7,title=50%25::x,%0D%0Ay: 1%25\n",
  );
  expect(annotationLine({ ...annotation, file: undefined, message: "m" })).toBe("::error title=50%25::m\n");
  const hostile = "\u001b[2J\u0007\u009b1m\u202e\u2028";
  const shown = String.raw`\e[2J\u0007\u009b1m\u202e\u2028`;
  expect(annotationLine({ ...annotation, file: hostile, title: hostile, message: hostile })).toBe(
    `::error file=${shown},line=7,title=${shown}::${shown}\n`,
  );
});
