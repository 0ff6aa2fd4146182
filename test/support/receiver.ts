import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { TEST_CERTIFICATE, TEST_KEY } from "./tls-fixture.ts";

/** A real webhook handler on loopback that keeps what it was sent and answers as told. */
export interface Receiver {
  /** `http://127.0.0.1:<port>/hook`, or `https:` with `tls`. */
  readonly url: string;
  readonly port: number;
  /** Whole requests, in the order in which their bodies were complete. */
  readonly requests: readonly ReceivedRequest[];
  /** Connections accepted so far, also those on which nothing came. */
  readonly accepted: number;
  /** Connections open now. */
  readonly open: number;
  /** Answers for the next requests, one each; afterwards `answer` decides again. */
  script(...answers: readonly Answer[]): void;
  /** The answer to each request that no script names: 200 without a body unless set. */
  answer: (request: ReceivedRequest) => Answer;
  /** Resolves once `count` requests have come since the start. */
  received(count: number): Promise<readonly ReceivedRequest[]>;
  /** Drops all connections. Safe to call twice. */
  close(): Promise<void>;
}

export interface ReceivedRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** `Date.now()` when the body was complete. */
  readonly atMs: number;
}

export type Answer =
  | {
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Uint8Array;
      /** Holds the answer back until this resolves. */
      readonly after?: Promise<unknown>;
    }
  /** Closes the connection with a reset and no answer. */
  | "reset"
  /** Never answers. */
  | "hang"
  /** Writes to the connection itself, past HTTP. */
  | { readonly raw: (socket: Socket) => void };

/** @param options `tls`: `https:` with the certificate of `tls-fixture.ts`, or with `cert`, of the same key; `port`: a certain port instead of a free one */
export async function startReceiver(
  options: { tls?: boolean; cert?: string; host?: string; port?: number } = {},
): Promise<Receiver> {
  const { tls = false, cert = TEST_CERTIFICATE, host = "127.0.0.1" } = options;
  const requests: ReceivedRequest[] = [];
  const scripted: Answer[] = [];
  const sockets = new Set<Socket>();
  const waiting: { count: number; resolve: () => void }[] = [];
  let accepted = 0;

  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    // A sender that gives up in the middle is part of what is tested.
    request.on("error", () => {});
    response.on("error", () => {});
    request.on("end", () => {
      const received: ReceivedRequest = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
        ),
        rawHeaders: request.rawHeaders,
        body: Buffer.concat(chunks),
        atMs: Date.now(),
      };
      requests.push(received);
      void give(scripted.shift() ?? receiver.answer(received), request.socket, response);
      for (const waiter of waiting) if (requests.length >= waiter.count) waiter.resolve();
    });
  };
  const server: Server = tls
    ? createHttpsServer({ key: TEST_KEY, cert }, listener)
    : createHttpServer(listener);
  server.on("connection", (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  // A handler that hangs must hang for as long as the test wants.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: options.port ?? 0, host, backlog: 4_096 }, resolve);
  });
  const { port } = server.address() as AddressInfo;

  const receiver: Receiver = {
    url: `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}/hook`,
    port,
    requests,
    get accepted() {
      return accepted;
    },
    get open() {
      return sockets.size;
    },
    script: (...answers) => void scripted.push(...answers),
    answer: () => ({}),
    async received(count) {
      if (requests.length < count) {
        await new Promise<void>((resolve) => {
          waiting.push({ count, resolve });
        });
      }
      return requests;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      if (!server.listening) return;
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
  return receiver;
}

async function give(answer: Answer, socket: Socket, response: ServerResponse): Promise<void> {
  if (answer === "hang") return;
  if (answer === "reset") {
    socket.resetAndDestroy();
    return;
  }
  if ("raw" in answer) {
    answer.raw(socket);
    return;
  }
  await answer.after;
  response.writeHead(answer.status ?? 200, answer.headers);
  response.end(answer.body);
}
