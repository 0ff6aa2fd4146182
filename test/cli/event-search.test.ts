import { expect, test } from "vitest";
import { searchLine, wholePage } from "../../src/cli/event-search.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { useServed } from "./served.ts";

const FRENCH = '{"properties":{"country":{"const":"FR"}},"required":["country"]}';
const served = useServed(async ({ evreg }) => {
  await evreg.actions.create({ action: "order.created", application: "shop", schemata: { type: "object" } });
  for (const country of ["FR", "DE", "FR", "DE", "FR"]) {
    await evreg.events.publish({ action: "order.created", payload: RawJson.fromValue({ country }) });
  }
});

test("`events list --where` finds events by their payloads, and says where it ended", async () => {
  const { code, stdout, stderr } = await served.run(["events", "list", "--where", "-", "--limit", "2"], {
    input: FRENCH,
  });
  expect(code).toBe(0);
  expect(stdout.match(/"country":"FR"/g)).toHaveLength(2);
  expect(stderr).toContain("2 events found in 3. Go on: evreg events --where - --limit 2 --after 3");
});

test("with --all it prints each that is found, one a line", async () => {
  const { stdout } = await served.run(["events", "list", "--where", "-", "--all"], { input: FRENCH });
  const lines = stdout.trim().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { rowid: number }).rowid)).toEqual([5, 3, 1]);
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

test("the last line of a search says that nothing is left", () => {
  expect(searchLine(1, { searched: 1_200, next: null }, "evreg events")).toBe(
    "1 event found in 1,200; no more behind.",
  );
});
