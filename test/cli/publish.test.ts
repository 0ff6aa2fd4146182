import { afterAll, expect, test } from "vitest";
import { startCommand } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { deliveriesOf, publish, register, subscribe } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const served = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  const schemata = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
  for (const action of ["plain", "wanted", "refused", "stuck", "paused", "many", "sifted"]) {
    await register(evreg, action, schemata);
  }
  receiver.answer = ({ path }) => {
    if (path.endsWith("/refused")) return { status: 500, body: "no\u001b[2J" };
    return path.endsWith("/stuck") ? "hang" : { status: 200 };
  };
  const strict = { type: "object", required: ["a", "b"], properties: { n: { minimum: 0 } } };
  await register(evreg, "strict", strict);
  for (const action of ["wanted", "refused", "stuck", "sifted"]) {
    const handler = `${receiver.url}/${action}`;
    const filter = action === "sifted" ? { properties: { id: { minimum: 100 } } } : null;
    await subscribe(evreg, "s", { action, handler, max_retries: 0, filter });
  }
});
const { data, run, json, expectEach, write } = served;
let receiver: Receiver;

afterAll(() => receiver.close());

async function total(action: string): Promise<number> {
  return (await served.evreg.events.list({ action, limit: 1 })).meta.total;
}

const EXACT = '{"z": 1,\n "id":12345678901234567890, "1": 1.0, "é": "\\u00e9"}';

test("a payload is stored byte for byte, from an argument, a file or stdin", async () => {
  write("payload.json", `${EXACT}\n`);
  const published = await Promise.all([
    json<{ rowid: number }>(["publish", "plain", EXACT]),
    json<{ rowid: number }>("publish plain payload.json"),
    json<{ rowid: number }>("publish plain -", { input: `  ${EXACT}` }),
  ]);
  for (const { data: event } of published) {
    const answer = await fetch(`${served.server.url}/v1/events/${event.rowid}`);
    expect(await answer.text()).toContain(`"payload":${EXACT}`);
  }
  const get = `events get ${published[0].data.rowid}`;
  expect((await run(`${get} --json`)).stdout).toContain(`"payload":${EXACT}`);
  await expectEach([[`${get} --output jsonl`, 0, /^.+\n$/]]);
});

test("a refused publish reports why, and ends with the exit code for it", async () => {
  await expectEach([
    ['publish plain {"id":"seven"}', 1, "", /^Error: .*id must be an integer\n {2}value: "seven"\n$/],
    ["publish no.such {}", 3, "", /no\.such/],
    ['publish plain {"id":1,}', 1, "", /line 1.*typed in quotes/s],
    ['publish plain {"id":1,"id":2} --json', 1, "", /"code":400\}\n$/],
    ["publish plain [1]", 1, ""],
    [
      "publish plain not-json",
      2,
      "",
      /There is no file not-json\. .*A payload is a JSON object, typed in quotes/,
    ],
    ['publish strict {"n":-1}', 1, "", /: a is required\n {2}- b is .*\n {2}- n must be at least 0: -1\n$/],
  ]);
});

test("an idempotency key makes a second publish safe, and another payload a conflict", async () => {
  const key = "--idempotency-key order-7";
  const { data: first } = await json<{ rowid: number }>(`publish plain {"id":7} ${key}`);
  await expectEach([
    [`publish plain {"id":7} ${key}`, 0, undefined, new RegExp(`stands for event ${first.rowid}`)],
    [`publish plain {"id":8} ${key}`, 5, ""],
  ]);
});

test("--wait ends with 0 when all was delivered or filtered, else with 1", async () => {
  const why = /^Failed: 1 of 1 deliveries .*evreg deliveries get \d+\. .*evreg deliveries retry \d+$/m;
  const filtered = /^\{.*"action":"sifted","status":"filtered","attempt":0.*\n$/;
  const [failed] = await expectEach([
    ['publish refused {"id":1} --wait', 1, /failed +1 .*HTTP 500/, why],
    ['publish sifted {"id":1} --wait', 0, /billing\/s +filtered +0 +\S+Z +-/, ""],
    ["deliveries --status filtered --output jsonl", 0, filtered],
    ['publish wanted {"id":1} --wait', 0, /billing\/s +delivered +1/, ""],
    ['publish plain {"id":1} --wait', 0, undefined, /No delivery to show/],
  ]);
  const { data: event, meta } = await json('publish wanted {"id":2} --wait');
  expect(meta).toMatchObject({
    outcome: "delivered",
    deliveries: [{ event_id: event["rowid"], status: "delivered" }],
  });
  const [, id = ""] = /^ +(\d+) +\d+ +refused/m.exec(failed?.stdout ?? "") ?? [];
  await expectEach([
    [`deliveries get ${id}`, 0, /1 +\S+Z +\d+(?: +(?:\d+|-)){3} +failed +500 +no\\e\[2J/],
    ["deliveries --status failed", 0, /refused/],
    [`deliveries retry ${id}`, 0],
    ["subscriptions --action refused", 0, /refused +failing/],
  ]);
});

test("a delivery retried while its subscription is paused is held, and the output says so", async () => {
  const event = await publish(served.evreg, "refused", '{"id": 9}');
  const [delivery] = await deliveriesOf(served.evreg, { event: event.rowid, status: "failed" });
  const { rowid, subscription_id: id } = delivery!;
  await served.evreg.subscriptions.update(id, { active: false });
  const told = `Delivery ${rowid} is held: it waits until subscription ${id} is active again: evreg subscriptions update ${id} --active\n`;
  await expectEach([[`deliveries retry ${rowid}`, 0, /^Status +held$/m, told]]);
  await served.evreg.subscriptions.update(id, { active: true });
});

test("a refused address is reported with the reason and the setting that allows it", async () => {
  const given = { action: "plain", handler: `${served.server.url}/hook`, max_retries: 0 };
  const { rowid: subscription } = await subscribe(served.evreg, "itself", given);
  await publish(served.evreg, "plain", '{"id": 1}');
  const [failed] = await deliveriesOf(served.evreg, { subscription, status: "failed" });
  const told = "address_refused: Deliveries to 127.0.0.1 are not allowed: it is this service itself.\n";
  await expectEach([[`deliveries get ${failed!.rowid}`, 0, undefined, told]]);
  await served.evreg.subscriptions.delete(subscription);
});

test("--wait ends when only held deliveries remain, and prints how to resume them", async () => {
  const given = { action: "paused", handler: `${receiver.url}/refused`, max_retries: 20 };
  const { rowid: subscription } = await subscribe(served.evreg, "s", given);
  const waited = run('publish paused {"id":1} --wait');
  await deliveriesOf(served.evreg, { subscription, status: "waiting" });
  await served.evreg.subscriptions.update(subscription, { active: false });
  const { code, stderr } = await waited;
  expect(code).toBe(1);
  expect(stderr).toContain(
    `The rest is held until its subscription is active again: evreg subscriptions update ${subscription} --active. `,
  );
});

test("--wait ends at its time limit, and with 130 at an interruption; the event is published either way", async () => {
  const before = await total("stuck");
  const late =
    /^(?!.*Failed).*^Timed out after 0 s \([^\n]* so far\)\. A running server goes on with them\. [^\n]* evreg deliveries list --event \d+$/ms;
  await expectEach([
    ['publish stuck {"id":1} --wait --timeout 0', 1, undefined, late],
    ['publish stuck {"id":1} --wait --timeout 0 --json', 1, /"meta":\{"outcome":"timeout"/],
    ['publish refused {"id":1} --wait --json', 1, /"meta":\{"outcome":"failed"/],
    ['publish plain {"id":1} --wait --json', 0, /"meta":\{"outcome":"none"/],
  ]);

  const words = ["publish", "stuck", '{"id": 2}', "--wait"];
  const waiting = startCommand(words, { env: { EVREG_DATA: data } });
  // Its delivery under way: the command is waiting.
  await receiver.received(receiver.requests.filter(({ path }) => path.endsWith("/stuck")).length + 1);
  while ((await total("stuck")) < before + 3) await new Promise((resolve) => setImmediate(resolve));
  waiting.child.kill("SIGINT");
  const { code, stderr } = await waiting.ended;
  expect(code).toBe(130);
  expect(stderr).toMatch(
    /Interrupted\. Event (\d+) is published all the same\. See how it goes on: evreg deliveries list --event \1\n$/,
  );
});

test("--all lists every record, one per line, and a reader may stop early", async () => {
  const lines = Array.from({ length: 1_203 }, (_, at) => `{"action":"many","payload":{"id":${at}}}`);
  const published = await run("publish --batch - --output jsonl", {
    input: `${lines.join("\n")}\n`,
  });
  expect(published).toMatchObject({ code: 0, stderr: "" });
  expect(published.stdout.trimEnd().split("\n")).toHaveLength(1_203);

  const walked = await run("events --action many --all --order asc");
  const ids = walked.stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { payload: { id: number } }).payload.id);
  expect(ids).toEqual(lines.map((_, at) => at));

  const { child, ended } = startCommand(["events", "--all", "--data", data]);
  child.stdout.once("data", () => child.stdout.destroy());
  expect(await ended).toMatchObject({ code: 0, stderr: "" });
});

test("--wait does not wait for what a consumer has not taken, and says so", async () => {
  for (const action of ["wanted", "plain"]) await subscribe(served.evreg, "puller", { action, mode: "pull" });
  const told = /Not waited for: billing\/puller\. What waits there waits for a consumer\./;
  await expectEach([
    ['publish wanted {"id":1} --wait --json', 0, /"meta":\{"outcome":"delivered"/, ""],
    ['publish plain {"id":1} --wait', 0, undefined, told],
  ]);
  const { data: waiting } = await served.evreg.deliveries.list({ action: "plain", limit: 1 });
  const { rowid } = waiting[0]!;
  const why = `Delivery ${rowid} waits for a consumer to claim it.\n`;
  await expectEach([[`deliveries get ${rowid}`, 0, undefined, why]]);
});
