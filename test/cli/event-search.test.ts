import { expect, test } from "vitest";
import { wholePage } from "../../src/cli/resource-command.ts";
import { publish, register } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const FRENCH = '{"properties":{"country":{"const":"FR"}},"required":["country"]}';
const served = useServed(async ({ evreg }) => {
  await register(evreg, "order.created");
  for (const country of ["FR", "DE", "FR", "DE", "FR"]) {
    await publish(evreg, "order.created", JSON.stringify({ country }));
  }
});

const goOn = (words: string) => new RegExp(`2 events found in 3\\. Go on: evreg events ${words} --after 3`);

test("`events list --where` finds events by their payloads, and says where it ended", async () => {
  const two = /^(?:(?!"FR").)*"FR"(?:(?!"FR").)*"FR"(?:(?!"FR").)*$/s;
  await served.expectEach([
    ["events list --where - --limit 2", 0, two, goOn("--where - --limit 2"), { input: FRENCH }],
    ["events --where country=FR --limit 2", 0, two, goOn("--where country=FR --limit 2")],
  ]);
});

test("`events list --deliveries` says what became of each", async () => {
  const { stdout } = await served.run("events list --deliveries --limit 1");
  expect(stdout).toMatch(/DELIVERIES +PAYLOAD\n.* none +\{"country":"FR"\}/);
  const { data } = await served.json<readonly object[]>("events --deliveries --limit 1");
  expect(data).toMatchObject([{ rowid: 5, deliveries: {} }]);
});

test("`events list --idempotency-key` finds the event of a key", async () => {
  await served.expectEach([["events list --idempotency-key none", 0, "", /No event matches\./]]);
});

test("--where takes members with their values, several of them, and a schema inline", async () => {
  const found = async (...words: string[]) => {
    const { data } = await served.json<readonly { rowid: number }[]>(["events", "list", ...words]);
    return data.map(({ rowid }) => rowid);
  };
  expect(await found("--where", "country=FR")).toEqual([5, 3, 1]);
  expect(await found("--where", "country=FR", "--where", "customer.id=7")).toEqual([]);
  expect(await found("--where", FRENCH)).toEqual([5, 3, 1]);
  await served.expectEach([['events --where country=FR --where a="x"', 0, "", /^No event matches\.\n/]]);
});

test.each([
  [["french"], 'or MEMBER=VALUE such as country=FR, which may be repeated. There is no file "french".'],
  [["country"], "takes a file with a JSON Schema"],
  [["country=FR", FRENCH], "takes one JSON Schema, or only MEMBER=VALUE where it is given more than once"],
  [["country=FR", "country=DE"], 'each place once; not "country=FR" "country=DE".'],
  [["country!=FR"], 'not "country!=FR".'],
  [["items[0]=2", "items.a=2"], 'each place once; not "items[0]=2" "items.a=2".'],
  [["{"], "--where:1: Malformed JSON"],
])("--where %j is refused", async (typed, told) => {
  const outcome = await served.run(["events", ...typed.flatMap((one) => ["--where", one])]);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toContain(told);
});

test("with --all it prints each that is found, one a line", async () => {
  const each = /^\{"rowid":5,.*\}\n\{"rowid":3,.*\}\n\{"rowid":1,.*\}\n$/;
  await served.expectEach([["events list --where - --all", 0, each, undefined, { input: FRENCH }]]);
});

test("a search that ends early goes on until the page is full", async () => {
  const asked: object[] = [];
  const answers = [
    { data: [9], meta: { searched: 10, next: 90 } },
    { data: [], meta: { searched: 10, next: 80 } },
    { data: [8, 7], meta: { searched: 4, next: 76 } },
  ];
  const list = (query: object) => {
    asked.push(query);
    return Promise.resolve(answers[asked.length - 1]!);
  };
  expect(await wholePage(list, { where: FRENCH }, 3)).toEqual({
    data: [9, 8, 7],
    meta: { searched: 24, next: 76, per_page: 3 },
  });
  expect(asked.slice(1)).toEqual([
    { where: FRENCH, after: 90, limit: 2 },
    { where: FRENCH, after: 80, limit: 2 },
  ]);
});
