import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import { textWidth } from "../../src/cli/io/text.ts";
import { startCommand } from "../support/program.ts";
import { startReceiver } from "../support/receiver.ts";
import { publish as publishAt, register, subscribe } from "../support/records.ts";
import { serveHere } from "../support/server.ts";
import { until } from "../support/until.ts";
import { resultLine } from "../../src/commands/tail.ts";
import type { DeliveryResult } from "../../src/domain/stream.ts";
import { useServed } from "../support/served.ts";

const TIME = String.raw`\d\d:\d\d:\d\dZ`;
const PAYLOAD = `{"id": "A-1",\n "text": "${"long ".repeat(20)}"}`;

const served = useServed(async ({ evreg }) => {
  await register(evreg, "order.created");
  await evreg.actions.create({ action: "user.seen", application: "crm", schemata: { type: "object" } });
});

/** Runs a tail, and does something once it is there. */
async function whileTailing(line: string, columns: number, act: () => Promise<unknown>) {
  const before = await open();
  const tail = served.run(line, { env: { COLUMNS: String(columns) } });
  await until("the stream", async () => (await open()) > before);
  await act();
  return tail;
}

const open = async (): Promise<number> =>
  Number(/^evreg_streams_open (\d+)$/m.exec(await served.evreg.metrics())?.[1]);
const publish = (action = "order.created") => publishAt(served.evreg, action, PAYLOAD);

test("at 80 columns the error of an attempt is whole", () => {
  const result = {
    event_id: 72,
    application: "billing",
    subscription: "invoices",
    action: "order.created",
    status: "waiting",
    timestamped: "2027-01-31T10:20:30.400Z",
    status_code: null,
    error_code: "connection_refused",
    duration_ms: 6,
  } as unknown as DeliveryResult;
  expect(resultLine(result, 80)).toBe(
    "10:20:30Z  order.created  #72  → billing/invoices  waiting  connection_refused …\n",
  );
  expect(resultLine(result, 100)).toMatch(/connection_refused {2}6 ms\n$/);
});

test("events come as they are published, in lines that fit", async () => {
  const line = "events tail --payloads --max 2";
  const tail = await whileTailing(line, 60, async () => [await publish(), await publish("user.seen")]);
  expect(tail).toMatchObject({ code: 0, stderr: "" });
  const lines = tail.stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(new RegExp(`^${TIME}  order.created         #1  shop        {"id": .*…$`));
  expect(lines[1]).toMatch(new RegExp(`^${TIME}  user.seen             #2  crm         {"id": `));
  for (const one of lines) expect(textWidth(one)).toBeLessThanOrEqual(60);
});

test("events of the past come first, and for programs a record a line", async () => {
  const records = /^\{"rowid":1,.*"payload":\{"id":.*\}\n\{"rowid":2,.*"application":"crm".*\}\n$/;
  await served.expectEach([
    ["events tail --since 1h --max 2 --output jsonl", 0, records],
    ["events tail --since 1 --max 1 --json --no-payloads", 0, /^\{(?!.*"payload":)/],
    ["events tail --since 0 --action user.* --max 1", 0, /^2\d\d\d-\S+Z {2}user\.seen {2}#2 {2}crm\n$/],
  ]);
});

test("what cannot be is refused", async () => {
  await served.expectEach([
    ["events tail --since soon", 2, ""],
    ["events tail --from soon", 2, ""],
    ["deliveries tail --since 12", 2, ""],
    ["deliveries tail --status lost", 2, ""],
  ]);
});

test("results of deliveries come as they are stored, and those that the server remembers", async () => {
  const receiver = await startReceiver();
  receiver.answer = ({ path }) => ({ status: path.endsWith("down") ? 400 : 204 });
  for (const name of ["up", "down"]) {
    await subscribe(served.evreg, name, { handler: `${receiver.url}/${name}`, max_retries: 0 });
  }
  const tail = await whileTailing("deliveries tail --max 2", 80, publish);
  expect(tail).toMatchObject({ code: 0, stderr: "" });
  for (const ending of [String.raw`up\s+204`, String.raw`down\s+failed  400`]) {
    const line = `^${TIME}  order.created  #\\d+  → billing/${ending}  [\\d,]+ ms$`;
    expect(tail.stdout).toMatch(new RegExp(line, "m"));
  }
  const failed = "deliveries tail --status failed --subscription billing/down --max 1 --from 2026-01-01";
  const record = /"subscription":"down".*"status":"failed".*"attempt":1/;
  // The data are as new as the server.
  await served.expectEach([[`${failed} --output jsonl`, 0, record, ""]]);
  await receiver.close();
});

test("Ctrl-C ends it with 130, and a reader that has enough ends it quietly", async () => {
  const before = await open();
  const tail = `events tail --data ${served.data}`;
  const interrupted = startCommand(tail);
  await until("the stream", async () => (await open()) > before);
  interrupted.child.kill("SIGINT");
  expect(await interrupted.ended).toMatchObject({ code: 130 });

  const { child: piped, ended } = startCommand(`${tail} --since 0`);
  await once(piped.stdout, "data");
  piped.stdout.destroy();
  await until("its end", async () => {
    await publish();
    return piped.exitCode !== null;
  });
  expect(await ended).toMatchObject({ code: 0, stderr: "" });
});

test("it goes on once its server is back, and says so in a word; without one it says what it needs", async () => {
  const data = served.at("restarted");
  mkdirSync(data, { mode: 0o700 });
  const first = await serveHere(data, { dev: true });
  const { port } = new URL(first.url);
  const evreg = connect({ url: first.url });
  await register(evreg, "order.created");
  const { child, soFar } = startCommand(`events tail --max 2 --url ${first.url}`);
  await until("the stream", async () => /^evreg_streams_open 1$/m.test(await evreg.metrics()));
  await publishAt(evreg);
  await until("the first", () => soFar().stdout !== "");
  await first.stop();
  await until("the word", () => soFar().stderr === "Reconnecting …\n");
  const second = await serveHere(data, { dev: true, changes: { port: Number(port) } });
  await publishAt(evreg);
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(soFar().stdout.match(/#\d+/g)).toEqual(["#1", "#2"]);
  expect(soFar().stderr).toBe("Reconnecting …\nReconnected.\n");
  await evreg.close();
  await second.stop();
  await served.expectEach([["events tail --data restarted", 2, "", /events tail needs a server/]]);
});
