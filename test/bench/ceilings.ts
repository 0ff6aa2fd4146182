import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Client, createClient } from "@libsql/client";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { Pool } from "undici";
import { TABLES } from "../../src/store/sql/tables.ts";
import { signedRequest } from "../support/signed-request.ts";
import { answerCalls } from "./calls.ts";
import { CpuShare } from "./cpu-share.ts";
import type { Vitals } from "./probe.ts";
import { BATCH_ITEMS, payloadOf, SCHEMA, WAITING_ACTION } from "./workload.ts";

// What bounds evreg, done with the same parts and nothing else. Each scenario has a process of its own for its ceiling.

/** On two cores 16, 32, 64 and 128 did 18.5, 18.7, 18.9 and 18.4 thousand deliveries a second. */
const CONNECTIONS = 64;
const SECRET = Buffer.alloc(32, 7);

function listen(listener: RequestListener): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer(listener).listen(0, "127.0.0.1", () =>
      resolve((server.address() as AddressInfo).port),
    );
  });
}

const ajv = new Ajv();
addFormats.default(ajv);
const isValid = ajv.compile(SCHEMA);

let pool: Pool | undefined;
let path = "/";
let lastEvent = 0;
let cpu = new CpuShare();

interface Publish {
  readonly action: string;
  readonly payload: unknown;
}

function relay(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => take(request, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), response));
}

function take(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const { action, payload } = JSON.parse(body.toString()) as Publish;
  const status = request.url !== "/v1/events" ? 404 : isValid(payload) ? 201 : 422;
  if (status === 201) lastEvent += 1;
  const answer = JSON.stringify({ data: { rowid: lastEvent } });
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(answer),
  });
  response.end(answer);
  if (status === 201) post(lastEvent, action, payload);
}

function post(event: number, action: string, payload: unknown): void {
  const timestamp = Math.floor(Date.now() / 1_000);
  const id = `evt_${event}_1`;
  const body = JSON.stringify({ event, action, payload });
  const signature = createHmac("sha256", SECRET).update(`${id}.${timestamp}.${body}`).digest("base64");
  const headers = {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": `v1,${signature}`,
  };
  pool?.dispatch({ path, method: "POST", headers, body }, ANSWERED);
}

/** What becomes of a delivery is the receiver's to count. */
const ANSWERED = {
  onRequestStart: () => undefined,
  onResponseStart: () => undefined,
  onResponseData: () => undefined,
  onResponseEnd: () => undefined,
  onResponseError(_: unknown, error: Error): void {
    throw error;
  },
};

const PRAGMAS = [
  "PRAGMA locking_mode = EXCLUSIVE",
  "PRAGMA journal_mode = WAL",
  "PRAGMA synchronous = FULL",
  "PRAGMA foreign_keys = ON",
  "PRAGMA cache_size = -32768",
  "PRAGMA wal_autocheckpoint = 4000",
];

const INSERT = `INSERT INTO event (action_id, revision, timestamped_ms, payload)
  SELECT value ->> 0, value ->> 1, value ->> 2, CAST(value ->> 3 AS BLOB) FROM json_each(?)`;

let client: Client | undefined;

const calls = {
  /** The least that can be done with a publish: h3 reads the JSON body and answers it. */
  listenToEcho(): Promise<number> {
    const app = new H3();
    app.post("/v1/events", (event) => event.req.json());
    return listen(toNodeHandler(app));
  },
  /**
   * The least that checks an event, answers it, and posts it signed to one handler. It keeps nothing, so what evreg takes more
   * than this is what keeping costs.
   */
  listenToRelay({ handler }: { handler: string }): Promise<number> {
    const { origin, pathname } = new URL(handler);
    pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
    path = pathname;
    return listen(relay);
  },
  begin(): void {
    cpu = new CpuShare();
  },
  end(): Pick<Vitals, "processMs" | "processShare" | "mainThreadShare"> {
    const { processMs, process, mainThread } = cpu.read();
    return { processMs, processShare: process, mainThreadShare: mainThread };
  },
  /**
   * The most that delivering can do: undici posts the very bytes that evreg sends, signed one by one, and nothing else. Answers
   * requests a second.
   */
  async deliver({ handler, requests }: { handler: string; requests: number }): Promise<number> {
    const { origin, pathname } = new URL(handler);
    const posting = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
    const secret = `whsec_${SECRET.toString("base64")}`;
    const payloads = Array.from({ length: requests }, (_, event) => Buffer.from(payloadOf(event)));
    const startedMs = performance.now();
    const waiting = payloads.entries();
    const worker = async (): Promise<void> => {
      for (const [index, payload] of waiting) {
        const event = { eventId: index + 1, action: WAITING_ACTION, payload, secret };
        const { headers, body } = signedRequest(event);
        const answer = await posting.request({ path: pathname, method: "POST", headers, body });
        if (answer.statusCode !== 200) throw new Error(`The receiver answered ${answer.statusCode}.`);
        await answer.body.dump();
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, worker));
    const elapsedMs = performance.now() - startedMs;
    await posting.close();
    return requests / (elapsedMs / 1_000);
  },
  /** Makes the tables in a new file. */
  async openFile({ file }: { file: string }): Promise<void> {
    client = createClient({ url: `file:${file}`, concurrency: 1 });
    for (const statement of [...PRAGMAS, ...TABLES]) await client.execute(statement);
    await client.execute(
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('order.created', 'shop', 1, 0)",
    );
  },
  /**
   * The most that the engine takes: the rows of a batch, as JSON, straight into its tables, each batch durable, one after the other.
   * Answers rows a second.
   */
  async insert({ durationMs }: { durationMs: number }): Promise<number> {
    if (client === undefined) throw new Error("openFile comes first.");
    const payloads = Array.from({ length: BATCH_ITEMS }, (_, item) => payloadOf(item));
    const startedMs = performance.now();
    const untilMs = startedMs + durationMs;
    let rows = 0;
    while (performance.now() < untilMs) {
      const nowMs = Date.now();
      const batch = JSON.stringify(payloads.map((payload) => [1, 1, nowMs, payload]));
      const { rowsAffected } = await client.execute({ sql: INSERT, args: [batch] });
      rows += rowsAffected;
    }
    return rows / ((performance.now() - startedMs) / 1_000);
  },
};
export type CeilingCalls = typeof calls;

answerCalls(calls);
