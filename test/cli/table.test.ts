import { expect, onTestFinished, test, vi } from "vitest";
import { type Column, columnsFor, renderRecord, renderTable } from "../../src/cli/io/table.ts";
import { textWidth } from "../../src/cli/io/text.ts";
import type { Action } from "../../src/domain/action.ts";
import type { Delivery } from "../../src/domain/delivery.ts";
import type { Replay } from "../../src/domain/replay.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import { ACTIONS } from "../../src/cli/views/actions.ts";
import { ATTEMPT_LIST, DELIVERIES, REPLAYS } from "../../src/cli/views/deliveries.ts";
import { SUBSCRIPTIONS } from "../../src/cli/views/subscriptions.ts";
import { attempt } from "../ui-parts/attempt.ts";

interface Row {
  id: number;
  name: string;
  at: string;
  payload: string;
}

const COLUMNS: Column<Row>[] = [
  { title: "ID", value: (row) => row.id, align: "right" },
  { title: "NAME", value: (row) => row.name, shrinkTo: 6 },
  { title: "AT", value: (row) => row.at },
  { title: "PAYLOAD", value: (row) => row.payload, shrinkTo: 8 },
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

test("in a pipe nothing is truncated", () => {
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

test("optional columns are dropped before rows become blocks, lowest priority first, and only where that helps", () => {
  const columns = COLUMNS.map((column): Column<Row> => {
    const spare = { AT: 2, NAME: 1 }[column.title];
    return spare === undefined ? column : { ...column, dropOrder: spare };
  });
  const rows = ROWS.map((row, at) => ({ ...row, at: `2027-01-3${at}T10:20:30.400Z` }));
  const titles = (width: number | undefined): string =>
    columnsFor(columns, rows, width)
      .map(({ title }) => title)
      .join(" ");
  expect([undefined, 60, 48, 47, 40, 39, 14].map(titles)).toEqual([
    "ID NAME AT PAYLOAD",
    "ID NAME AT PAYLOAD",
    "ID NAME AT PAYLOAD",
    "ID AT PAYLOAD",
    "ID AT PAYLOAD",
    "ID PAYLOAD",
    "ID PAYLOAD",
  ]);
  expect(titles(13)).toBe("ID NAME AT PAYLOAD");
  expect(widths(renderTable(columnsFor(columns, rows, 30), rows, 30))).toEqual([13, 30, 25]);
});

test("where room is short, today's times have no date, and texts are cut before times", () => {
  vi.useFakeTimers({ now: new Date("2027-01-31T12:00:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  const columns: Column<Row>[] = [
    { title: "AT", value: (row) => row.at, time: true },
    { title: "NAME", value: (row) => row.name },
  ];
  const rows = [ROWS[0]!, { ...ROWS[1]!, at: "2027-01-30T23:59:58.001Z" }];
  const times = (width: number): string =>
    renderTable(columnsFor(columns, rows, width), rows, width).replaceAll(/ .*/g, "");
  expect(times(60)).toBe("AT\n2027-01-31T10:20:30.400Z\n2027-01-30T23:59:58.001Z\n");
  expect(times(40)).toBe("AT\n10:20:30Z\n2027-01-30T23:59Z\n");
  columns[1] = { ...columns[1]!, shrinkTo: 4 };
  expect(times(30)).toBe(times(60));
});

const NAMES = { application: "billing-service", subscription: "invoices", action: "order.created.v2" };
const DELIVERY = {
  ...NAMES,
  rowid: 12_345,
  event_id: 123_456,
  subscription_id: 7,
  status: "delivering",
  attempt: 3,
  next_attempt_at: AT,
  last_error: "connection_refused",
  timestamped: AT,
} as Delivery;
const REPLAY = {
  ...DELIVERY,
  selection: "missed",
  from: AT,
  to: AT,
  status: "cancelled",
  total: 100_000,
  queued: 99_999,
} as unknown as Replay;
const TIMES = { duration_ms: 10_001, dns_ms: 12, connect_ms: 113, first_byte_ms: 1_001 };
const ATTEMPT = attempt({
  ...TIMES,
  attempt: 12,
  started_at: AT,
  outcome: "delivered",
  status_code: null,
  error_code: "connection_refused",
  response: "x".repeat(500),
});
const ACTION = { application: "evreg", revision: 1, compatibility: "full", timestamped: AT } as Action;
const SUBSCRIPTION = {
  rowid: 7,
  application: "billing",
  subscription: "invoices",
  action: "order.created",
  active: true,
} as Subscription;

test.each([
  ["deliveries", (width: number) => listed(DELIVERIES.list, DELIVERY, width)],
  ["replays", (width: number) => listed(REPLAYS.list, REPLAY, width)],
  ["attempts", (width: number) => listed(ATTEMPT_LIST, ATTEMPT, width)],
])("%s are a line each at 80 columns", (_, lines) => {
  expect(lines(80)).toHaveLength(2);
  expect(lines(200)[0]!.length).toBeGreaterThan(lines(80)[0]!.length);
});

function listed<T>(columns: readonly Column<T>[], record: T, width: number): readonly string[] {
  return renderTable(columnsFor(columns, [record], width), [record], width)
    .trimEnd()
    .split("\n");
}

test("at 80 columns a delivery keeps its subscription and its error: attempts, times and events are dropped", () => {
  const short = { rowid: 7, event_id: 9, application: "billing", attempt: 1, last_error: null };
  const delivery = { ...DELIVERY, ...short };
  expect(listed(DELIVERIES.list, delivery, 80)).toEqual([
    "ID  EVENT  ACTION            SUBSCRIPTION      STATUS      NEXT OR END",
    " 7      9  order.created.v2  billing/invoices  delivering  2027-01-31T10:20Z",
  ]);
  expect(listed(DELIVERIES.list, { ...delivery, last_error: "connection_refused" }, 80)[1]).toBe(
    " 7      9  order.created.v2  billing/invoices  delivering  connection_refused",
  );
  const action = { ...ACTION, action: "evreg.subscription.deactivated" };
  expect(listed(ACTIONS.list, action, 80)[1]).toContain(action.action);
  expect(listed(ACTIONS.list, action, 90)[1]).toMatch(/ 2027-01-31T10:20Z$/);
  expect(listed(ACTIONS.list, action, 120)[1]).toMatch(new RegExp(` ${AT}$`));
  expect(listed(ACTIONS.list, { ...action, action: "a".repeat(100) }, 80)[1]).toMatch(/^a+… /);
});

test("what people copy is cut only where nothing else can be", () => {
  const columns: Column<Row>[] = [
    { title: "WHAT", value: () => "7 billing/invoices", shrinkTo: 6, keepWhole: true },
    { title: "MEMBERS", value: () => "x".repeat(50), shrinkTo: 10 },
  ];
  const line = (width: number): string | undefined => listed(columns, ROWS[0] as Row, width)[1];
  expect(line(40)).toBe(`7 billing/invoices  ${"x".repeat(19)}…`);
  expect(line(30)).toBe(`7 billing/invoices  ${"x".repeat(9)}…`);
  expect(line(25)).toBe(`7 billing/in…  ${"x".repeat(9)}…`);
});

test("addresses are shortened, and titles never", () => {
  const handler = "https://hooks.example.com/a/long/way/to/invoices";
  const [title, line] = listed(SUBSCRIPTIONS.list, { ...SUBSCRIPTION, handler }, 80);
  expect(title).toMatch(/^ID {2}APPLICATION {2}SUBSCRIPTION {2}ACTION +STATE +HANDLER$/);
  expect(line).toMatch(/ https:\/\/hooks\S+…$/);
  expect(textWidth(line!)).toBe(80);
});

test("wide characters keep the columns straight", () => {
  const lines = renderTable(COLUMNS, ROWS, undefined).split("\n");
  expect(cellsBefore(AT, lines[1])).toBe(cellsBefore(AT, lines[2]));
});

test("a block keeps its line breaks, and contains nothing else that controls a terminal", () => {
  const block: Column<Row>[] = [
    { title: "Payload", value: () => '{\n\t"a": "\u001b]0;x\u0007"\n}', block: true },
  ];
  expect(renderRecord(block, ROWS[0] as Row, 40)).toBe('Payload\n  {\n  \\t"a": "\\e]0;x\\u0007"\n  }\n');
});

test("a value of several lines is next to its title, one line each", () => {
  const columns: Column<{ text: string }>[] = [
    { title: "Id", value: () => 1 },
    { title: "Headers", value: ({ text }) => text, lines: true },
  ];
  const record = { text: "X-A: 1\nX-B: \u001b[2J" };
  expect(renderRecord(columns, record, undefined)).toBe(
    "Id       1\nHeaders  X-A: 1\n         X-B: \\e[2J\n",
  );
  expect(renderRecord(columns, { text: "" }, 40)).toContain("Headers  -\n");
});
