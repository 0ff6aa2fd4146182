import { afterAll, expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
const { run, json } = commandLine(folder.path, {});
afterAll(() => folder.remove());

test("without a server, only what waits for one is noted", async () => {
  const create = "actions create order.created --application shop --schema -".split(" ");
  await run(create, { input: '{"type": "object"}' });
  const publish = (more: readonly string[] = []) => run(["publish", "order.created", "{}", ...more]);
  expect(await publish(), "nobody subscribed").toMatchObject({ code: 0, stderr: "" });

  const subscribe =
    "subscriptions create --application billing --name invoices --action order.created --handler https://example.com/";
  const { data: subscription } = await json<{ rowid: number }>(subscribe.split(" "));
  const waits = "Its deliveries wait for a server on this data folder: evreg serve\n";
  expect(await publish(["--idempotency-key", "k"])).toMatchObject({ code: 0, stderr: waits });

  const inBulk = await run("publish --batch -", {
    input: '{"action": "order.created", "payload": {}}',
  });
  expect(inBulk).toMatchObject({ code: 0 });
  expect(inBulk.stderr).toContain("Deliveries wait for a server on this data folder: evreg serve");

  await run(`subscriptions update ${subscription.rowid} --no-active`);
  const held = await publish(["--idempotency-key", "k"]);
  expect(held.stderr, "held by the pause, not by the missing server").not.toContain("wait for a server");

  const deleted = await run(`subscriptions delete ${subscription.rowid}`);
  expect(deleted.stderr).toBe("Deleted; 2 deliveries that waited were cancelled.\n");
});

test("where only a server with --dev would deliver, that is the one to start", async () => {
  const place = ["--data", "developed"];
  const create = "actions create order.created --application shop --schema -".split(" ");
  await run([...create, ...place], { input: '{"type": "object"}' });
  const subscribe =
    "subscriptions create --application billing --name invoices --action order.created --handler http://example.com/";
  const env = { EVREG_DELIVERY_ALLOW_HTTP: "true" };
  expect(await run([...subscribe.split(" "), ...place], { env })).toMatchObject({ code: 0 });
  expect((await run(["publish", "order.created", "{}", ...place])).stderr).toBe(
    "Its deliveries wait for a server on this data folder: evreg serve --dev --data developed\n",
  );
  const waited = await run(["publish", "order.created", "{}", "--wait", ...place]);
  expect(waited).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("evreg serve --dev --data developed"),
  });
});
