import { expect, test } from "vitest";
import { useServed } from "../support/served.ts";
import { register } from "../support/records.ts";
import { startReceiver } from "../support/receiver.ts";
import { startCommand } from "../support/program.ts";

const served = useServed();
const { data, run, json, expectEach, write } = served;

const BATCH = "publish --batch -";

/** An action of its own for each test, so that what was published can be counted. */
async function action(name: string): Promise<string> {
  const schemata = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
  await register(served.evreg, name, schemata);
  return name;
}

async function idsOf(name: string): Promise<number[]> {
  const { data: events } = await served.evreg.events.list({ action: name, order: "asc", limit: 500 });
  return events.map((event) => (event.payload.value() as { id: number }).id);
}

function line(name: string, id: number, more = ""): string {
  return `{"action":"${name}","payload":{"id":${id}}${more}}`;
}

function jsonLines(text: string): Record<string, unknown>[] {
  const lines = text.trimEnd().split("\n");
  return lines.map((part) => JSON.parse(part) as Record<string, unknown>);
}

/** Lines 3, 5 and 7 of these cannot be published: not JSON, against the schema, an unknown action. */
function withBadLines(name: string): string {
  return [
    line(name, 1),
    "",
    "not json",
    line(name, 4),
    `{"action":"${name}","payload":{"id":"five"}}`,
    line(name, 6),
    line("no.such", 7),
    line(name, 8),
  ].join("\n");
}

test("refused lines are reported with number and reason, the others are published, and the exit code is 7", async () => {
  const name = await action("batch.continue");
  write("bad.ndjson", withBadLines(name));
  const told = [
    String.raw`Line 3: .+\n`,
    String.raw`Line 5: .*id must be an integer: "five"\n`,
    String.raw`Line 7: .*no\.such.*\n`,
    String.raw`4 events published, 3 lines refused\. Fix those lines and publish them separately\.\n`,
  ];
  const meant = /^Line 1: There is no action "batch\.continu"\. Did you mean batch\.continue\?\n/;
  await expectEach([
    ["publish --batch bad.ndjson", 7, "", new RegExp(`^${told.join("")}$`)],
    [BATCH, 7, "", meant, { input: line("batch.continu", 1) }],
  ]);
  expect(await idsOf(name)).toEqual([1, 4, 6, 8]);
});

test("twenty refused lines are printed, and the others counted; JSON output has each", async () => {
  const name = await action("batch.alike");
  const input = [line(name, 1), ...Array.from({ length: 1_200 }, () => line("no.such", 1))].join("\n");
  const [table, jsonl] = await Promise.all([
    run(BATCH, { input }),
    run(`${BATCH} --output jsonl`, { input }),
  ]);
  expect(table.code).toBe(7);
  expect(toldLines(table.stderr)).toEqual(Array.from({ length: 20 }, (_, at) => at + 2));
  const [rest, counts] = table.stderr.trimEnd().split("\n").slice(-2);
  expect(rest).toBe("1,180 more lines refused; --json shows each refused line.");
  expect(counts).toMatch(/^1 event published, 1,200 lines refused\./);
  expect(jsonLines(jsonl.stderr)).toHaveLength(1_200);
});

/** Lines 2 to 5 of these cannot be published, whoever finds out: the reader for 3 and 5, the service for 2 and 4. */
function withFaultsInTurn(name: string): string {
  const against = `{"action":"${name}","payload":{"id":"two"}}`;
  return [line(name, 1), against, "{oops}", line("no.such", 4), `{"action":"${name}",`].join("\n");
}

function toldLines(stderr: string): number[] {
  return Array.from(stderr.matchAll(/^Line (\d+): /gm), ([, number]) => Number(number));
}

test("refused lines are reported in the order of the file, whatever is wrong with them", async () => {
  const name = await action("batch.order");
  const { code, stderr } = await run(BATCH, { input: withFaultsInTurn(name) });
  expect(code).toBe(7);
  expect(toldLines(stderr)).toEqual([2, 3, 4, 5]);
  expect(await idsOf(name)).toEqual([1]);
});

test("an error within a line has a column only, as the line is named already", async () => {
  const options = { input: "\n{oops}" };
  await expectEach([
    [BATCH, 7, "", /^Line 2: Malformed JSON at column 2: .+\n0 events published, 1 line refused/, options],
  ]);
  const [told] = jsonLines((await run(`${BATCH} --output jsonl`, options)).stderr);
  expect(told).toMatchObject({ line: 2, code: 400 });
  expect(told?.["details"]).toEqual({ column: 2, byte: 1, reason: "syntax" });
});

test("an array is refused with a hint that lines are wanted, and an empty input is no failure", async () => {
  const input = `\u{feff} [${line("any", 1)},\n${line("any", 2)}]`;
  await expectEach([
    [BATCH, 7, undefined, /^Line 1: There must be one event a line, not an array\./, { input }],
    [BATCH, 0, "", undefined, { input: "\n\n" }],
  ]);
});

test("in JSON output, accepted events go to stdout and refusals to stderr, one JSON line each", async () => {
  const name = await action("batch.jsonl");
  const outcome = await run(`${BATCH} --output jsonl`, { input: withBadLines(name) });
  expect(outcome.code).toBe(7);
  const ids = jsonLines(outcome.stdout).map(({ payload }) => (payload as { id: number }).id);
  expect(ids).toEqual([1, 4, 6, 8]);
  const [error, details] = [expect.any(String) as unknown, expect.any(Object) as unknown];
  expect(jsonLines(outcome.stderr)).toEqual([
    { line: 3, error, details, code: 400 },
    { line: 5, error, details: { field: "id", message: error, value: "five" }, code: 422 },
    { line: 7, error, details, code: 404 },
  ]);
  const counts = { accepted: 1, rejected: 0, replayed: 0, published: 1 };
  expect((await json(BATCH, { input: line(name, 1) })).meta).toEqual(counts);
});

test("--on-error stop ends before the batch of the first refused line", async () => {
  const name = await action("batch.stop");
  const lines = Array.from({ length: 600 }, (_, id) => line(name, id));
  const input = lines.with(550, line("no.such", 1)).join("\n");
  const stop = `${BATCH} --on-error stop`;
  const stopped =
    /^Line 551: .*\n500 events published, 1 line refused\. Stopped after line 500\. Fix it\. Continue with: tail -n \+501 FILE \| evreg publish --batch - --on-error stop\n$/;
  const keyed = `${stop} --idempotency-key stopped`;
  const again = /Stopped after line 500\. Fix it\. Give the same command again: no line is stored twice\./;
  const mended = "100 events published, 500 already there, 0 lines refused.\n";
  await expectEach([
    [stop, 7, undefined, stopped, { input }],
    [stop, 7, undefined, /Nothing was published: 3 lines refused\. Fix them/, { input: withBadLines(name) }],
    [keyed, 7, undefined, again, { input }],
    [keyed, 0, undefined, mended, { input: lines.join("\n") }],
  ]);
  expect(await idsOf(name)).toHaveLength(500);
  expect((await served.evreg.events.list({ action: name, limit: 1 })).meta.total).toBe(500 + 600);
});

test("--atomic publishes all lines or none", async () => {
  const name = await action("batch.atomic");
  const atomic = `${BATCH} --atomic`;
  const tooMany = Array.from({ length: 1_001 }, (_, at) => line(name, at)).join("\n");
  const inTurn = await run(atomic, { input: withFaultsInTurn(name) });
  expect(toldLines(inTurn.stderr)).toEqual([2, 3, 4, 5]);
  const none = /Nothing was published: 3 lines refused\. Fix them and publish all again\./;
  const limit = /Error: --atomic takes at most 1,000 lines .* Nothing was published\./;
  await expectEach([
    [atomic, 1, "", none, { input: withBadLines(name) }],
    [atomic, 1, undefined, undefined, { input: `${line(name, 1)}\n${line("no.such", 2)}` }],
    [atomic, 1, undefined, limit, { input: tooMany }],
  ]);
  expect(await idsOf(name)).toEqual([]);
  await expectEach([[atomic, 0, undefined, undefined, { input: line(name, 1) }]]);
  expect(await idsOf(name)).toEqual([1]);
});

test("lines with an idempotency key can be sent again safely", async () => {
  const name = await action("batch.again");
  const input = [1, 2, 3].map((id) => line(name, id, `,"idempotency_key":"${name}-${id}"`)).join("\n");
  const more = `${input}\n${line(name, 4)}`;
  const three = "published, 3 already there, 0 lines refused.\n";
  await expectEach([
    [BATCH, 0, undefined, "3 events published, 0 lines refused.\n", { input }],
    [BATCH, 0, undefined, `1 event ${three}`, { input: more }],
    [`${BATCH} --on-error stop`, 0, undefined, `0 events ${three}`, { input }],
    [`${BATCH} --atomic`, 0, undefined, `1 event ${three}`, { input: more }],
  ]);
  const counts = { accepted: 3, published: 0, rejected: 0, replayed: 3 };
  expect((await json(BATCH, { input })).meta).toEqual(counts);
  expect(await idsOf(name)).toEqual([1, 2, 3, 4, 4]);
});

test("lines of a slow producer are published as they come, and an interruption reports how many were", async () => {
  const name = await action("batch.interrupted");
  const words = ["publish", "--batch", "-", "--output", "jsonl", "--data", data];
  const { child, ended } = startCommand(words);
  const published = new Promise((resolve) => child.stdout.once("data", resolve));
  child.stdin.write(`${line(name, 1)}\n${line(name, 2)}\n${line(name, 3).slice(0, 10)}`);
  await published;
  expect(await idsOf(name)).toEqual([1, 2]);
  child.kill("SIGINT");
  const { code, stderr } = await ended;
  expect(code).toBe(130);
  expect(stderr).toMatch(/2 events published, 0 lines refused\. Interrupted after line 2\. .*tail -n \+3/);
});

test("an unreachable target ends the command before anything is published", async () => {
  const told = /^0 events published, 0 lines refused\. Ended after line 0\.\nError: /;
  await expectEach([[`${BATCH} --url http://127.0.0.1:9`, 6, "", told, { input: line("any", 1) }]]);
});

test("after a broken connection it is clear which lines are uncertain", async () => {
  const receiver = await startReceiver();
  receiver.answer = () => "reset";
  const input = [line("any", 1), line("any", 2)].join("\n") + "\n";
  const outcome = await run(["publish", "--batch", "-", "--url", new URL(receiver.url).origin], { input });
  await receiver.close();
  expect(outcome).toMatchObject({ code: 6, stdout: "" });
  expect(outcome.stderr).toMatch(
    /Lines 1 to 2 may be published or not; those with an idempotency_key can be sent again/,
  );
});
