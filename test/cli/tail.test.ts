import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { textWidth } from "../../src/cli/io/text.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { startCommand, temporaryFolder } from "../support/program.ts";
import { startReceiver } from "../support/receiver.ts";
import { serveHere } from "../support/server.ts";
import { until } from "../support/until.ts";
import { resultLines } from "../../src/commands/tail.ts";
import type { DeliveryResult } from "../../src/domain/stream.ts";
import { useServed } from "../support/served.ts";

const TIME = String.raw`\d\d:\d\d:\d\dZ`;
const payload = RawJson.fromText(`{"id": "A-1",\n "text": "${"long ".repeat(20)}"}`);

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
  expect(resultLines(80)(result)).toBe(
    "10:20:30Z  order.created  #72  → billing/invoices  waiting  connection_refused …\n",
  );
  expect(resultLines(100)(result)).toMatch(/connection_refused {2}6 ms\n$/);
});

describe("following what happens", () => {
  const served = useServed(async ({ evreg }) => {
    await evreg.actions.create({
      action: "order.created",
      application: "shop",
      schemata: { type: "object" },
    });
    await evreg.actions.create({ action: "user.seen", application: "crm", schemata: { type: "object" } });
  });

  /** Runs a tail, and does something once it is there. */
  async function whileTailing(words: readonly string[], act: () => Promise<unknown>, columns?: number) {
    const before = await open();
    const env = columns === undefined ? {} : { COLUMNS: String(columns) };
    const tail = served.run(words, { env });
    await until("the stream", async () => (await open()) > before);
    await act();
    return tail;
  }

  const open = async (): Promise<number> =>
    Number(/^evreg_streams_open (\d+)$/m.exec(await served.evreg.metrics())?.[1]);
  const publish = (action = "order.created") => served.evreg.events.publish({ action, payload });

  test("events come as they are published, in lines that fit", async () => {
    const words = ["events", "tail", "--payloads", "--max", "2"];
    const tail = await whileTailing(words, async () => [await publish(), await publish("user.seen")], 60);
    expect(tail).toMatchObject({ code: 0, stderr: "" });
    const lines = tail.stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(new RegExp(`^${TIME}  order.created  #1  shop  {"id": "A-1", .*…$`));
    expect(lines[1]).toMatch(new RegExp(`^${TIME}  user.seen      #2  crm   {"id": "A-1"`));
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(60);
  });

  test("events of the past come first, and for programs a record a line", async () => {
    const { stdout } = await served.run("events tail --since 1h --max 2 --output jsonl");
    const records = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(records).toMatchObject([
      { rowid: 1, payload: { id: "A-1" } },
      { rowid: 2, application: "crm" },
    ]);
    const bare = ["events", "tail", "--since", "1", "--max", "1", "--json", "--no-payloads"];
    expect(JSON.parse((await served.run(bare)).stdout)).not.toHaveProperty("payload");
    const one = await served.run("events tail --since 0 --action user.* --max 1");
    expect(one.stdout).toMatch(/^2\d\d\d-\S+Z {2}user\.seen {2}#2 {2}crm\n$/);
  });

  test("what does not exist is said, and what cannot be is refused", async () => {
    const { child, soFar, ended } = startCommand([
      ..."events tail --action user.sene --data".split(" "),
      served.data,
    ]);
    await until("the hint", () => soFar().stderr.endsWith("\n"));
    child.kill("SIGINT");
    expect((await ended).stderr).toBe('There is no action "user.sene". Did you mean user.seen?\n');
    for (const words of [
      ["events", "tail", "--since", "soon"],
      ["events", "tail", "--from", "soon"],
      ["deliveries", "tail", "--since", "12"],
      ["deliveries", "tail", "--status", "lost"],
    ]) {
      expect(await served.run(words)).toMatchObject({ code: 2, stdout: "" });
    }
  });

  test("results of deliveries come as they are stored, and those that the server remembers", async () => {
    const receiver = await startReceiver();
    receiver.answer = ({ path }) => ({ status: path.endsWith("down") ? 400 : 204 });
    for (const subscription of ["up", "down"]) {
      const handler = `${receiver.url}/${subscription}`;
      const input = { application: "billing", subscription, action: "order.created", handler };
      await served.evreg.subscriptions.create({ ...input, max_retries: 0 });
    }
    const tail = await whileTailing(["deliveries", "tail", "--max", "2"], publish, 80);
    expect(tail).toMatchObject({ code: 0, stderr: "" });
    expect(tail.stdout).toMatch(
      new RegExp(`^${TIME}  order.created  #\\d+  → billing/up\\s+204  [\\d,]+ ms$`, "m"),
    );
    expect(tail.stdout).toMatch(
      new RegExp(`^${TIME}  order.created  #\\d+  → billing/down\\s+failed  400  [\\d,]+ ms$`, "m"),
    );
    const failed =
      "deliveries tail --status failed --subscription billing/down --max 1 --from 2026-01-01 --output jsonl";
    const again = await served.run(failed.split(" "));
    // The data are as new as the server.
    expect(again.stderr).toBe("");
    expect(JSON.parse(again.stdout)).toMatchObject({ status: "failed", subscription: "down", attempt: 1 });
    await receiver.close();
  });

  test("Ctrl-C ends it with 130, and a reader that has enough ends it quietly", async () => {
    const before = await open();
    const tail = ["events", "tail", "--data", served.data];
    const interrupted = startCommand(tail);
    await until("the stream", async () => (await open()) > before);
    interrupted.child.kill("SIGINT");
    expect(await interrupted.ended).toMatchObject({ code: 130 });

    const { child: piped, ended } = startCommand([...tail, "--since", "0"]);
    await once(piped.stdout, "data");
    piped.stdout.destroy();
    await until("its end", async () => {
      await publish();
      return piped.exitCode !== null;
    });
    expect(await ended).toMatchObject({ code: 0, stderr: "" });
  });
});

test("it goes on once its server is back, and says so in a word", async () => {
  const folder = temporaryFolder();
  const first = await serveHere(folder.path, { dev: true });
  const { port } = new URL(first.url);
  const { connect } = await import("../../src/client/client.ts");
  const evreg = connect({ url: first.url });
  await evreg.actions.create({ action: "a", application: "x", schemata: {} });
  const publish = () => evreg.events.publish({ action: "a", payload: RawJson.fromText("{}") });
  const { child, soFar } = startCommand(["events", "tail", "--max", "2", "--url", first.url]);
  await until("the stream", async () => /^evreg_streams_open 1$/m.test(await evreg.metrics()));
  await publish();
  await until("the first", () => soFar().stdout !== "");
  await first.stop();
  await until("the word", () => soFar().stderr === "Reconnecting …\n");
  const second = await serveHere(folder.path, { dev: true, changes: { port: Number(port) } });
  await publish();
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(soFar().stdout.match(/#\d+/g)).toEqual(["#1", "#2"]);
  expect(soFar().stderr).toBe("Reconnecting …\nReconnected.\n");
  await evreg.close();
  await second.stop();
  folder.remove();
});

test("on a data folder without a server it says what it needs", async () => {
  const folder = temporaryFolder();
  const { runProgram } = await import("../support/program.ts");
  const outcome = await runProgram(["events", "tail", "--data", folder.path], { cwd: folder.path, env: {} });
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toContain("events tail needs a server");
  folder.remove();
});
