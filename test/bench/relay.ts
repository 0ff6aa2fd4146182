import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { Pool } from "undici";
import { answerCalls } from "./calls.ts";
import { CpuShare } from "./cpu-share.ts";
import type { Vitals } from "./probe.ts";
import { SCHEMA } from "./workload.ts";

// The least that checks an event, answers it, and posts it signed to one handler. It keeps nothing, so what evreg takes more
// than this is what keeping costs.

const CONNECTIONS = 64;
const SECRET = Buffer.alloc(32, 7);

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

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => take(request, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), response));
});

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

const calls = {
  /** Posts everything to `handler`; answers its own port. */
  listen({ handler }: { handler: string }): Promise<number> {
    const { origin, pathname } = new URL(handler);
    pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
    path = pathname;
    return new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
  },
  begin(): void {
    cpu = new CpuShare();
  },
  end(): Pick<Vitals, "processMs" | "processShare" | "mainThreadShare"> {
    const { processMs, process, mainThread } = cpu.read();
    return { processMs, processShare: process, mainThreadShare: mainThread };
  },
};
export type RelayCalls = typeof calls;

answerCalls(calls);
