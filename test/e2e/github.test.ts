import { Ajv } from "ajv";
import addFormatsModule from "ajv-formats";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lengthOf, rounds, someOf } from "../faults/length.ts";
import { githubDocument, githubTypes, loosened, type GitHubType } from "../support/github.ts";
import { runProgram } from "../support/program.ts";
import { startReceiver, type ReceivedRequest, type Receiver } from "../support/receiver.ts";
import { subscribe } from "../support/records.ts";
import { useServed } from "../support/served.ts";

// GitHub's own event types and the payloads it recorded for them, through the real program: what a user brings.

// CommonJS: the function is the module's `default`.
const addFormats = addFormatsModule.default;
const allTypes = githubTypes();
/** Most of the time goes into compiling the schemas, of up to 256 KiB each. */
const types = someOf(allTypes, lengthOf("e2e/github")["event types"]);
const payloadsOf = (some: readonly GitHubType[]): number =>
  some.reduce((sum, type) => sum + type.payloads.length, 0);
const payloadCount = payloadsOf(types);
const served = useServed();
let receiver: Receiver;
const secrets = new Map<string, string>();

async function call(
  method: string,
  path: string,
  body: string,
): Promise<{ status: number; data: any; details?: any }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(served.server.url + path, { method, headers, body });
  return { status: response.status, ...((await response.json()) as { data: any; details?: any }) };
}

/** The payload's bytes as sent, at the place the specification's table gives them in a delivery. */
function payloadOf(request: ReceivedRequest): string {
  const text = request.body.toString("utf8");
  return text.slice(text.indexOf('"payload":') + '"payload":'.length, text.lastIndexOf(',"timestamp":'));
}

function verify(request: ReceivedRequest): void {
  const action = request.headers["x-evreg-event"] ?? "";
  new Webhook(secrets.get(action) ?? "").verify(request.body.toString("utf8"), request.headers);
}

/** Sent with whitespace and all, so that a re-written payload would show. */
const indented = (payload: object): string => JSON.stringify(payload, null, 2);

beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver?.close());

/**
 * What plain Ajv says of each payload, by GitHub's own document: the judge evreg has to agree with. What several types
 * refer to is compiled once, and without Ajv's own passes: they take most of the time and change no verdict.
 */
const judge = new Ajv({ strict: false, validateSchema: false, inlineRefs: false, code: { optimize: false } });
addFormats(judge);
judge.addSchema(githubDocument(), "github");

function conforms(type: GitHubType): boolean[] {
  const validate = judge.compile({ $ref: `github${String(type.schemata["$ref"])}` });
  return type.payloads.map((payload) => validate(payload));
}

function publish(type: GitHubType, payload: object): ReturnType<typeof call> {
  const body = `{"action":${JSON.stringify(type.name)},"payload":${indented(payload)}}`;
  return call("POST", "/v1/events", body);
}

describe(`${types.length} of GitHub's event types, with the ${payloadCount} payloads GitHub recorded for them`, () => {
  const expected = new Map<string, { type: GitHubType; text: string }>();
  const refused: { type: GitHubType; payload: object }[] = [];

  test("GitHub recorded 329 payloads of 58 types", () => {
    expect(allTypes).toHaveLength(58);
    expect(payloadsOf(allTypes)).toBe(329);
  });

  test("each type becomes an action, which gets a handler", async () => {
    for (const { name, schemata } of types) {
      const action = { action: name, application: "github", schemata };
      expect(await call("POST", "/v1/actions", JSON.stringify(action))).toMatchObject({ status: 201 });
      const handler = `${receiver.url}/${name}`;
      secrets.set(name, (await subscribe(served.evreg, `to ${name}`, { action: name, handler })).secret);
    }
  });

  const verdictsOf = new Map<GitHubType, boolean[]>();

  test("plain Ajv refuses the payloads that are older than the schemas published beside them", () => {
    for (const type of types) verdictsOf.set(type, conforms(type));
    const verdicts = [...verdictsOf.values()].flat();
    expect(verdicts.filter((verdict) => !verdict)).toHaveLength(rounds(3, 53));
  });

  test("over HTTP, evreg accepts a payload that conforms to GitHub's schema, and names the field of one that does not", async () => {
    for (const [type, verdicts] of verdictsOf) {
      for (const [index, payload] of type.payloads.entries()) {
        const { status, data, details } = await publish(type, payload);
        expect(status, `${type.name} ${index}`).toBe(verdicts[index] === true ? 201 : 422);
        if (status === 201) expected.set(String(data.rowid), { type, text: indented(payload) });
        else {
          expect(details).toMatchObject({ field: expect.any(String), message: expect.any(String) });
          refused.push({ type, payload });
        }
      }
    }
    expect(expected.size + refused.length).toBe(payloadCount);
  });

  test("an owner can loosen the schemas of the refused payloads", async () => {
    const loosening = [...new Set(refused.map((one) => one.type))];
    const compared = new Set(someOf(loosening, rounds(1, loosening.length)));
    for (const type of loosening) {
      const change = JSON.stringify({ schemata: loosened(type.schemata) });
      if (compared.has(type)) {
        expect(await call("PUT", `/v1/actions/${type.name}`, change)).toMatchObject({ status: 409 });
      }
      const applied = await call("PUT", `/v1/actions/${type.name}?compatibility=none`, change);
      expect(applied).toMatchObject({ status: 200, data: { revision: 2 } });
    }
  });

  test("evreg then accepts the rest", async () => {
    for (const { type, payload } of refused) {
      const { status, data } = await publish(type, payload);
      expect(status, type.name).toBe(201);
      expected.set(String(data.rowid), { type, text: indented(payload) });
    }
  });

  test("the handler gets each payload once, signed, with its bytes unchanged", async () => {
    const requests = await receiver.received(payloadCount);
    expectDeliveredOnce(requests.slice(0, payloadCount), expected);
  });

  test("the same holds for `publish --batch`", async () => {
    const before = receiver.requests.length;
    const all = types.flatMap(({ name, payloads }) =>
      payloads.map((payload) => ({ name, text: JSON.stringify(payload) })),
    );
    const input = all
      .map(({ name, text }) => `{"action":${JSON.stringify(name)},"payload":${text}}`)
      .join("\n");
    const line = `publish --batch - --output jsonl --data ${served.data}`;
    expect(await runProgram(line, { cwd: served.folder, input })).toMatchObject({ code: 0, stderr: "" });
    const requests = (await receiver.received(before + payloadCount)).slice(before);
    expect(requests).toHaveLength(payloadCount);
    const sent = all.map(({ name, text }) => `${name} ${text}`);
    const received = requests.map((request) => `${request.headers["x-evreg-event"]} ${payloadOf(request)}`);
    expect(received.toSorted()).toEqual(sent.toSorted());
    requests.forEach(verify);
  });

  test("the handler got nothing twice", async () => {
    expect(receiver.requests).toHaveLength(2 * payloadCount);
    const ids = new Set(receiver.requests.map((request) => request.headers["webhook-id"]));
    expect(ids.size).toBe(2 * payloadCount);
  });
});

function expectDeliveredOnce(
  requests: readonly ReceivedRequest[],
  expected: ReadonlyMap<string, { type: GitHubType; text: string }>,
): void {
  expect(requests).toHaveLength(expected.size);
  const seen = new Set<string>();
  for (const request of requests) {
    const body = JSON.parse(request.body.toString("utf8")) as { event_id: string; delivery_attempt: number };
    const published = expected.get(body.event_id);
    expect(published?.type.name).toBe(request.headers["x-evreg-event"]);
    expect(payloadOf(request)).toBe(published?.text);
    expect(body.delivery_attempt).toBe(1);
    verify(request);
    seen.add(body.event_id);
  }
  expect(seen.size).toBe(expected.size);
}
