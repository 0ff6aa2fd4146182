import { expect, test } from "vitest";
import { type Column, renderRecord, renderTable } from "../../src/cli/table.ts";
import { textWidth } from "../../src/cli/text-width.ts";

interface Row {
  id: number;
  name: string;
  at: string;
  payload: string;
}

const COLUMNS: Column<Row>[] = [
  { title: "ID", of: (row) => row.id, align: "right" },
  { title: "NAME", of: (row) => row.name, shrinkTo: 6 },
  { title: "AT", of: (row) => row.at },
  { title: "PAYLOAD", of: (row) => row.payload, shrinkTo: 8 },
];
const AT = "2027-01-31T10:20:30.400Z";
const ROWS: Row[] = [
  { id: 7, name: "order.created", at: AT, payload: `{"id":7,"note":"${"long ".repeat(40)}"}` },
  { id: 1024, name: "user.注文.created", at: AT, payload: '{"emoji":"👩‍👩‍👧 done"}' },
];

function widths(text: string): number[] {
  return text.trimEnd().split("\n").map(textWidth);
}

function cellsBefore(part: string, line = ""): number {
  return textWidth(line.slice(0, line.indexOf(part)));
}

test("in a pipe nothing is cut", () => {
  const text = renderTable(COLUMNS, ROWS, undefined);
  expect(text).toContain(ROWS[0]?.payload);
  expect(text.split("\n")[0]).toMatch(/^ +ID {2}NAME +AT +PAYLOAD$/);
});

test.each([60, 72, 80, 120, 200])("no line of a table is wider than a terminal of %i columns", (width) => {
  const text = renderTable(COLUMNS, ROWS, width);
  expect(Math.max(...widths(text))).toBeLessThanOrEqual(width);
  expect(text).toContain(AT);
  expect(text.trimEnd().split("\n")).toHaveLength(3);
});

test.each([20, 40])("at %i columns each record becomes a block, and loses nothing", (width) => {
  const text = renderTable(COLUMNS, ROWS, width);
  expect(Math.max(...widths(text))).toBeLessThanOrEqual(width);
  const [first = ""] = text.split("\n\n");
  const values = first
    .split("\n")
    .map((line) => line.slice(9))
    .join("");
  expect(values.replaceAll(" ", "")).toBe(
    ["7", "order.created", AT, ROWS[0]?.payload].join("").replaceAll(" ", ""),
  );
});

test("wide characters keep the columns straight", () => {
  const lines = renderTable(COLUMNS, ROWS, undefined).split("\n");
  expect(cellsBefore(AT, lines[1])).toBe(cellsBefore(AT, lines[2]));
});

test("escape sequences in names and values stay text", () => {
  const evil = { id: 1, name: "a\u001b[2J\u009b31m\u202eb", at: AT, payload: "line\nbreak\u0007" };
  for (const text of [
    renderTable(COLUMNS, [evil], 100),
    renderRecord(COLUMNS, evil, 40),
    renderTable(COLUMNS, [evil], undefined),
  ]) {
    // oxlint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  }
  expect(renderRecord(COLUMNS, evil, undefined)).toContain("a\\e[2J\\u009b31m\\u202eb");
});

test("a block keeps its line breaks and nothing else that acts on a terminal", () => {
  const block: Column<Row>[] = [
    { title: "Payload", of: () => '{\n\t"a": "\u001b]0;x\u0007"\n}', block: true },
  ];
  expect(renderRecord(block, ROWS[0] as Row, 40)).toBe('Payload\n  {\n  \\t"a": "\\e]0;x\\u0007"\n  }\n');
});

test("a value of several lines stands beside its title, a line each", () => {
  const columns: Column<{ text: string }>[] = [
    { title: "Id", of: () => 1 },
    { title: "Headers", of: ({ text }) => text, lines: true },
  ];
  const record = { text: "X-A: 1\nX-B: \u001b[2J" };
  expect(renderRecord(columns, record, undefined)).toBe(
    "Id       1\nHeaders  X-A: 1\n         X-B: \\e[2J\n",
  );
  expect(renderRecord(columns, { text: "" }, 40)).toContain("Headers  -\n");
});
