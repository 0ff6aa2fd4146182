import { afterAll, expect, test } from "vitest";
import type { Event } from "../../src/domain/event.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { register, subscribe } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const SCHEMA = {
  type: "object",
  properties: {
    id: { type: "integer", minimum: 1 },
    total: { type: "number" },
    customer: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  },
  required: ["id", "customer"],
};
let receiver: Receiver;

const { run, json, expectEach } = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  await register(evreg, "order.created", SCHEMA);
  await subscribe(evreg, "invoices", { handler: receiver.url });
});
afterAll(() => receiver.close());

type Published = Omit<Event, "payload"> & { readonly payload: Record<string, unknown> };

test("a made-up event is published, delivered and shown as publish shows it", async () => {
  const { data, meta } = await json<Published>("trigger order.created --wait");
  expect(meta).toMatchObject({ outcome: "delivered" });
  const [sent] = await receiver.received(1);
  expect(JSON.parse(sent!.body.toString("utf8"))).toMatchObject({ payload: data.payload });
  const shown =
    /^Payload\b.*\n[^]*"customer":[^]*^ *\d+ +\d+ +order\.created +billing\/invoices +delivered /m;
  await expectEach([["trigger order.created --wait --seed 7", 0, shown]]);
});

test("the same seed makes the same event, so a key makes it safe to repeat", async () => {
  const words = ["trigger", "order.created", "--seed", "7", "--idempotency-key", "try"];
  const first = await json<Published>(words);
  const again = await run([...words, "--json"]);
  expect((JSON.parse(again.stdout) as typeof first).data).toEqual(first.data);
  expect(again.stderr).toContain("Nothing new was published");
});
