import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { rawMessages } from "../../src/client/stream.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/until.ts";
import { type Harness, type HarnessOptions, startHarness } from "./harness.ts";

async function started(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await startHarness(options);
  onTestFinished(() => harness.close());
  await harness.owner.actions.create({ action: "a.b", application: "crm", schemata: { type: "object" } });
  return harness;
}

function published(harness: Harness, text: string): Promise<unknown> {
  return harness.owner.events.publish({ action: "a.b", payload: RawJson.fromText(text) });
}

const MAX_PART = 1_000;

/** The bytes of one stream, as they come. */
class Wire {
  readonly socket: Socket;
  text = "";
  ended = false;
  /** The end of `text`, in which a part may have begun that is waited for. */
  #end = "";
  readonly #awaited = new Map<string, () => void>();

  constructor(port: number, token: string, path: string, headers: readonly string[] = []) {
    this.socket = connect(port, "127.0.0.1");
    this.socket.on("data", (bytes) => this.#take(bytes.toString("latin1")));
    this.socket.on("error", () => undefined).on("close", () => (this.ended = true));
    const lines = [`GET ${path} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`, ...headers];
    this.socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    onTestFinished(() => void this.socket.destroy());
  }

  /** Without the frames of HTTP. */
  get body(): string {
    const [, ...rest] = this.text.split("\r\n\r\n");
    let chunked = rest.join("\r\n\r\n");
    let body = "";
    for (;;) {
      const [, length] = /^([0-9a-f]+)\r\n/.exec(chunked) ?? [];
      if (length === undefined) return body;
      const start = length.length + 2;
      const end = start + Number.parseInt(length, 16);
      body += chunked.slice(start, end);
      chunked = chunked.slice(end + 2);
    }
  }

  async messages() {
    const { value } = await rawMessages(Readable.from([Buffer.from(this.body, "latin1")])).next();
    return value ?? [];
  }

  has(part: string): Promise<void> {
    if (this.text.includes(part)) return Promise.resolve();
    return new Promise((resolve) => this.#awaited.set(part, resolve));
  }

  #take(text: string): void {
    this.text += text;
    const extended = this.#end + text;
    for (const [part, found] of this.#awaited) if (extended.includes(part)) found();
    this.#end = extended.slice(-MAX_PART);
  }
}

test("a stream is server-sent events that no proxy collects", async () => {
  const harness = await started();
  const wire = new Wire(harness.port, await harness.token("read"), "/v1/stream?payloads=true");
  await wire.has("event: ready");
  expect(wire.text).toMatch(/^HTTP\/1\.1 200 /);
  expect(wire.text).toContain("\r\ncontent-type: text/event-stream\r\n");
  expect(wire.text).toContain("\r\ncache-control: no-store\r\n");
  expect(wire.text).toContain("\r\nx-accel-buffering: no\r\n");
  expect(wire.text).not.toContain("content-length");
  await published(harness, '{"a":\n1}');
  await harness.local.clock.advance(1_000);
  await wire.has('"timestamped"');
  expect(wire.body).toMatch(
    /^:\n\nid: \w+\nevent: ready\ndata: \{\}\n\nid: \w+_1\nevent: event\ndata: \{"rowid":1,"action":"a\.b","application":"crm","revision":1,"timestamped":"[^"]+","payload":\{"a":\ndata: 1\}\}\n\n$/,
  );
});

test("the id of the last message goes before since, and what is no place is refused", async () => {
  const harness = await started();
  const token = await harness.token("read");
  for (const n of [1, 2, 3]) await published(harness, `{"n":${n}}`);
  const first = new Wire(harness.port, token, "/v1/stream?since=0");
  await first.has("event: ready");
  const [, second] = await first.messages();
  const wire = new Wire(harness.port, token, "/v1/stream?since=0", [`Last-Event-ID: ${second!.id}`]);
  await wire.has("event: ready");
  expect((await wire.messages()).map(({ type }) => type)).toEqual(["event", "ready"]);
  expect((await wire.messages())[0]!.data).toContain('"rowid":3');
  for (const [path, header] of [
    ["/v1/stream?since=soon", ""],
    ["/v1/stream?topics=", ""],
    ["/v1/stream?topics=events,tokens", ""],
    ["/v1/stream?payloads=1", ""],
    ["/v1/stream?x=1", ""],
    ["/v1/stream", "; drop"],
    ["/v1/stream", "x".repeat(5_000)],
  ]) {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(header === "" ? {} : { "last-event-id": header }),
    };
    const response = await fetch(`${harness.url}${path}`, { headers });
    expect(response.status, path).toBe(400);
    await response.body?.cancel();
  }
});

test("comments come every 15 seconds, with the id where it has moved on", async () => {
  const clock = new ManualClock();
  const harness = await started({ clock });
  const wire = new Wire(harness.port, await harness.token("read"), "/v1/stream?action=b.c");
  await wire.has("event: ready");
  await clock.advance(15_000);
  await until("a comment", () => wire.body.endsWith("data: {}\n\n:\n\n"));
  await published(harness, "{}");
  await until("a comment with an id", async () => {
    await harness.local.clock.advance(1_000);
    await clock.advance(15_000);
    return /\n\n:\nid: \w+_1\n\n$/.test(wire.body);
  });
  wire.socket.destroy();
  await until("no timer", () => clock.pending === 0);
});

test("a stream ends at once when its token is revoked", async () => {
  const clock = new ManualClock();
  const harness = await started({ clock });
  const { owner } = harness;
  const token = await harness.token("read");
  const wire = new Wire(harness.port, token, "/v1/stream");
  const other = new Wire(harness.port, await harness.token("admin"), "/v1/stream");
  await wire.has("event: ready");
  await other.has("event: ready");
  const [first] = (await owner.tokens.list()).data;
  await owner.tokens.revoke(first!.rowid);
  await until("the end", () => wire.text.endsWith("0\r\n\r\n"));
  expect(other.text).not.toMatch(/0\r\n\r\n$/);
});

test("a stop waits for no stream, not even for one that takes nothing", async () => {
  const stopping = new AbortController();
  const harness = await started({ stopping: stopping.signal });
  const token = await harness.token("read");
  const idle = new Wire(harness.port, token, "/v1/stream");
  await idle.has("event: ready");
  const stalled = new Wire(harness.port, token, "/v1/stream?payloads=true");
  await stalled.has("event: ready");
  stalled.socket.pause();
  await publishMuch(harness);
  stopping.abort();
  await harness.listener.close(60_000);
  await until("the end", () => idle.ended);
  expect(idle.text.endsWith("0\r\n\r\n")).toBe(true);
});

async function rowidsIn(wire: Wire): Promise<readonly number[]> {
  return (await wire.messages()).flatMap(({ type, data }) =>
    type === "event" ? [(JSON.parse(data) as { rowid: number }).rowid] : [],
  );
}

test("who is slow gets everything later, who takes nothing is cut off, and the others get everything in order", async () => {
  const clock = new ManualClock();
  const harness = await started({ clock });
  const token = await harness.token("read");
  const path = "/v1/stream?payloads=true";
  const [stalled, slow, ...others] = Array.from({ length: 4 }, () => new Wire(harness.port, token, path));
  for (const wire of [stalled!, slow!, ...others]) await wire.has("event: ready");
  stalled!.socket.pause();
  slow!.socket.pause();
  const last = await publishMuch(harness);
  const metrics = () => harness.owner.metrics();
  for (const wire of others) await wire.has(`"rowid":${last},`);
  await harness.local.clock.advance(3_000);
  slow!.socket.resume();
  await slow!.has(`"rowid":${last},`);
  const all = Array.from({ length: last }, (_, at) => at + 1);
  for (const wire of others) expect(await rowidsIn(wire)).toEqual(all);
  // It goes on where it was.
  expect(await rowidsIn(slow!)).toEqual(all);
  expect((await slow!.messages()).filter(({ type }) => type === "gap")).toEqual([]);
  await clock.advance(59_000);
  expect(await metrics()).toMatch(/^evreg_streams_open 4$/m);
  await clock.advance(2_000);
  await until("the cut", async () => /^evreg_streams_open 3$/m.test(await metrics()));
  stalled!.socket.resume();
  await until("its end", () => stalled!.ended);
});

/** More than the system holds for a connection; answers the last rowid. */
async function publishMuch(harness: Harness): Promise<number> {
  const payload = RawJson.fromText(`{"text":"${"x".repeat(15_000)}"}`);
  const items = Array.from({ length: 200 }, () => ({ action: "a.b", payload }));
  let last = 0;
  for (let round = 0; round < 5; round += 1) {
    const { data } = await harness.owner.events.publishBatch(items);
    last = data.at(-1)!.rowid;
    await harness.local.clock.advance(1_000);
  }
  return last;
}
