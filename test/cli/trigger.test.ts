import { afterAll, expect, test } from "vitest";
import { ownMember } from "../../src/cli/own-members.ts";
import { samplePayloads } from "../../src/cli/sample-payload.ts";
import type { Action } from "../../src/domain/action.ts";
import type { Event } from "../../src/domain/event.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
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

const { run, json } = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  await evreg.actions.create({ action: "order.created", application: "shop", schemata: SCHEMA });
  const names = { application: "billing", subscription: "invoices", action: "order.created" };
  await evreg.subscriptions.create({ ...names, handler: receiver.url });
});
afterAll(() => receiver.close());

type Published = Omit<Event, "payload"> & { readonly payload: Record<string, unknown> };

test("a made-up event with members of one's own is published, delivered and shown as publish shows it", async () => {
  const words = ["trigger", "order.created", "--set", "total=12.5", "--set", "customer.id=c-7", "--wait"];
  const { data, meta } = await json<Published>(words);
  expect(data.payload).toMatchObject({ total: 12.5, customer: { id: "c-7" } });
  expect(meta).toMatchObject({ outcome: "delivered" });
  const [sent] = await receiver.received(1);
  expect(JSON.parse(sent!.body.toString("utf8"))).toMatchObject({ payload: data.payload });
  const { stdout } = await run([...words, "--seed", "7"]);
  expect(stdout).toMatch(/^Payload\b.*\n[^]*"total":12\.5/m);
  expect(stdout).toMatch(/^ *\d+ +\d+ +order\.created +billing\/invoices +delivered /m);
});

test("the same seed makes the same event, so a key makes it safe to repeat", async () => {
  const words = ["trigger", "order.created", "--seed", "7", "--idempotency-key", "try"];
  const first = await json<Published>(words);
  const again = await run([...words, "--json"]);
  expect((JSON.parse(again.stdout) as typeof first).data).toEqual(first.data);
  expect(again.stderr).toContain("Nothing new was published");
});

test("a member that breaks the schema gets the refusal of any payload", async () => {
  const outcome = await run("trigger order.created --set id=none");
  expect(outcome).toMatchObject({ code: 1, stdout: "" });
  expect(outcome.stderr).toMatch(/^Error: .*\bid\b.* integer/);
});

test.each([
  [["trigger", "order.created", "--set", "total"], /--set: takes MEMBER=VALUE.*not "total"/],
  [["trigger", "order.created", "--set", "a..b=1"], /--set: takes MEMBER=VALUE/],
  [["trigger", "order.created", "--set", '["\\x"]=1'], /--set: takes MEMBER=VALUE/],
  [["trigger", "order.created", "--set", `${"a.".repeat(70)}b=1`], /--set: takes MEMBER=VALUE/],
  [["trigger", "order.created", "--set", "list[3]=1"], /--set: an item is past the end of its list/],
])("%j is refused as usage", async (words, told) => {
  const outcome = await run(words);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toMatch(told);
});

function payloadWith(schemata: object, ...set: string[]): unknown {
  const action = { action: "a", schemata } as unknown as Action;
  return samplePayloads(action, 1, 1, set.map(ownMember))[0]!.text();
}

test("values are JSON as it was typed, or else text, in members and items that are made on the way", () => {
  const OPEN = { type: "object", properties: { at: { type: "object" } }, required: ["at"], maxProperties: 1 };
  expect(payloadWith(OPEN, "at=12345678901234567890.10")).toBe('{"at":12345678901234567890.10}');
  expect(payloadWith(OPEN, 'at={"b": 1}', "at.c=x y", "at.d=", "at.e=01")).toBe(
    '{"at":{"b":1,"c":"x y","d":"","e":"01"}}',
  );
  expect(payloadWith(OPEN, "at.list[0].sku=a", "at.list[1]=null")).toBe('{"at":{"list":[{"sku":"a"},null]}}');
  expect(payloadWith(OPEN, 'at["odd.name"]=true')).toBe('{"at":{"odd.name":true}}');
  expect(payloadWith(OPEN, "at.__proto__.x=1")).toBe('{"at":{"__proto__":{"x":1}}}');
});

function branch(kind: string, member: string): object {
  return {
    properties: { kind: { const: kind }, [member]: { type: "string" } },
    required: ["kind", member],
    additionalProperties: false,
  };
}

test("a sample is looked for that conforms with what was set", () => {
  const schemata = { type: "object", oneOf: [branch("card", "number"), branch("iban", "account")] };
  expect(payloadWith(schemata, "kind=card")).toContain('"number":');
  expect(payloadWith(schemata, "kind=iban")).toContain('"account":');
});
