import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/until.ts";
import { startHarness } from "./harness.ts";
import type { Harness } from "./harness.ts";
import { RawConnection } from "./raw-connection.ts";

const clock = new ManualClock();
const BODY_BYTES = 400_000;
/** In place of a token's number. */
const ANONYMOUS = -1;

let harness: Harness;
const open: RawConnection[] = [];
let tokens: string[];

beforeAll(async () => {
  harness = await startHarness({ auth: { anonymousPublish: true }, bodyBytes: BODY_BYTES, clock });
  tokens = [await harness.token("publish"), await harness.token("publish"), await harness.token("publish")];
  await harness.owner.actions.create({ action: "a.b", application: "app", schemata: { type: "object" } });
});
afterAll(() => harness.close());
afterEach(async () => {
  for (const raw of open.splice(0)) raw.destroy();
  // Each test has the whole to itself.
  await until("all to be given back", async () => {
    const both = await Promise.all([publish(0, 200_000), publish(1, 200_000)]);
    return (await Promise.all(both.map((raw) => raw.answer()))).every(({ status }) => status === 201);
  });
  for (const raw of open.splice(0)) raw.destroy();
});

/** A batch of one event, as long as said. */
function batch(bytes: number): string {
  return '{"events":[{"action":"a.b","payload":{}}]}'.padEnd(bytes);
}

function head(token: number, length: string): string {
  return (
    `POST /v1/events/batch HTTP/1.1\r\nhost: a\r\n${token === ANONYMOUS ? "" : `authorization: Bearer ${tokens[token]}\r\n`}` +
    `content-type: application/json\r\n${length}\r\n\r\n`
  );
}

/** Sends a batch of so many bytes, but for the last `withheld` ones. */
async function publish(token: number, bytes: number, withheld = 0, from?: string): Promise<RawConnection> {
  const raw = await RawConnection.open(harness.port, from === undefined ? {} : { from });
  open.push(raw);
  raw.send(head(token, `content-length: ${bytes}`) + batch(bytes).slice(0, bytes - withheld));
  return raw;
}

async function isAnswered(raw: RawConnection): Promise<void> {
  expect((await raw.answer()).status).toBe(201);
}

/** What arrived on other connections is dealt with once this is answered a few times. */
async function turn(): Promise<void> {
  for (let count = 0; count < 3; count += 1) await isAnswered(await publish(2, 100));
}

async function refused(raw: RawConnection): Promise<void> {
  const { status, headers, body } = await raw.answer();
  expect(status, body).toBe(503);
  expect(headers["retry-after"]).toBe("2");
}

describe("large bodies", () => {
  test("of one token leave half of the memory to others, and small ones always have some", async () => {
    const held = await publish(0, 150_000, 1);
    await turn();
    const waits = await publish(0, 100_000);
    await isAnswered(await publish(0, 16_000));
    await isAnswered(await publish(1, 150_000));
    expect(waits.pending).toBe("");
    held.send(" ");
    await isAnswered(held);
    await isAnswered(waits);
  });

  // Elsewhere than on Linux this machine has one loopback address only.
  test.skipIf(process.platform !== "linux")(
    "of one token are one caller's from wherever they come, and those of another at the same address are not",
    async () => {
      const held = await publish(0, 150_000, 1, "127.0.0.2");
      await turn();
      const waits = await publish(0, 100_000, 0, "127.0.0.3");
      await isAnswered(await publish(1, 200_000, 0, "127.0.0.2"));
      expect(waits.pending).toBe("");
      held.destroy();
      await isAnswered(waits);
    },
  );

  test.skipIf(process.platform !== "linux")("without a token use the memory of their address", async () => {
    const held = await publish(ANONYMOUS, 150_000, 1, "127.0.0.2");
    await turn();
    const waits = await publish(ANONYMOUS, 100_000, 0, "127.0.0.2");
    await isAnswered(await publish(ANONYMOUS, 150_000, 0, "127.0.0.3"));
    await isAnswered(await publish(ANONYMOUS, 150_000, 0));
    await isAnswered(await publish(0, 200_000));
    expect(waits.pending).toBe("");
    held.destroy();
    await isAnswered(waits);
  });

  test("without a token and from this machine leave half of the memory to others", async () => {
    const held = await publish(ANONYMOUS, 200_000, 1);
    await turn();
    const waits = await publish(ANONYMOUS, 100_000);
    await isAnswered(await publish(0, 200_000));
    expect(waits.pending).toBe("");
    held.destroy();
    await isAnswered(waits);
  });

  test("may be slow, and one as large as all the memory is accepted", async () => {
    const alone = await publish(0, 1_000_000, 1);
    await turn();
    await clock.advance(30_000);
    alone.send(" ");
    await isAnswered(alone);
  });

  test("are refused when they wait too long", async () => {
    const held = await publish(0, 1_000_000, 1);
    await turn();
    const waits = await publish(0, 100_000);
    await turn();
    await clock.advance(10_000);
    await refused(waits);
    held.send(" ");
    await isAnswered(held);
  });

  test("are accepted in chunks of a byte, and count as the largest until they end", async () => {
    const raw = await RawConnection.open(harness.port);
    open.push(raw);
    raw.send(head(0, "transfer-encoding: chunked"));
    raw.send(batch(20_000).replace(/[^]/g, "1\r\n$&\r\n"));
    await turn();
    const waits = await publish(0, 20_000);
    await turn();
    expect(waits.pending).toBe("");
    raw.send("0\r\n\r\n");
    await isAnswered(raw);
    await isAnswered(waits);
  });

  test("take no memory once their callers left", async () => {
    const held = await publish(0, 200_000, 1);
    await turn();
    const waits = await publish(0, 200_000);
    await turn();
    waits.destroy();
    held.destroy();
    await isAnswered(await publish(0, 200_000));
  });
});

test("a body's memory is held until the answer is read", async () => {
  // More than a connection holds of the answer, which has the events.
  const events = Array.from({ length: 900 }, () => ({
    action: "a.b",
    payload: { text: "x".repeat(16_000) },
  }));
  const body = JSON.stringify({ events });
  const large = await startHarness({ bodyBytes: 2 * body.length, clock });
  const token = await large.token("admin");
  await large.owner.actions.create({ action: "a.b", application: "app", schemata: { type: "object" } });
  const send = async (): Promise<RawConnection> => {
    const raw = await RawConnection.open(large.port);
    open.push(raw);
    raw.send(
      `POST /v1/events/batch HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    return raw;
  };
  try {
    const unread = await send();
    unread.stopReading();
    await until("the batch to be stored", async () => (await large.owner.events.list()).meta.total > 0);
    const waits = await send();
    await turn();
    await clock.advance(5_000);
    expect(waits.pending).toBe("");
    unread.startReading();
    await isAnswered(unread);
    await isAnswered(waits);
    expect((await large.owner.events.list()).meta.total).toBe(2 * events.length);
  } finally {
    await large.close();
  }
});
