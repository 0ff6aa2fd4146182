import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import type { Health } from "../../src/domain/operations.ts";
import type { Principal, Scope } from "../../src/domain/token.ts";
import type { Evreg } from "../../src/evreg.ts";
import { createHttpApp } from "../../src/http/app.ts";
import { PublishCounts } from "../../src/metrics/counters.ts";
import type { ResponseLimits } from "../../src/http/response-budget.ts";
import type { HttpConfig } from "../../src/http/routes/route.ts";
import { type HttpLimits, type HttpListener, serveHttp } from "../../src/http/server.ts";
import type { ServicePort } from "../../src/service/service.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { KeptLog } from "../support/kept-log.ts";
import { type LocalService, openLocalService, PAYLOAD_BYTES } from "../support/local-service.ts";

export const VERSION = "0.0.0-test";

/** What goes with a request; a body that is no text goes as JSON. */
export interface Sent {
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  /** Of JSON its value. */
  readonly body: any;
}

export interface Harness {
  readonly url: string;
  readonly port: number;
  readonly listener: HttpListener;
  readonly log: KeptLog["lines"];
  readonly local: LocalService;
  /** As whoever holds the data folder, past HTTP. */
  readonly owner: Evreg;
  /** A token with these scopes. */
  token(...scopes: Scope[]): Promise<string>;
  /** @param line such as `GET /v1/actions` */
  ask(line: string, sent?: Sent): Promise<Got>;
  close(): Promise<void>;
}

export interface HarnessOptions {
  readonly auth?: Partial<HttpConfig["auth"]>;
  readonly ui?: HttpConfig["ui"];
  readonly hasTokenFile?: boolean;
  readonly http?: Partial<HttpLimits>;
  readonly answers?: Partial<ResponseLimits>;
  readonly bodyBytes?: number;
  readonly clock?: Clock;
  readonly engineState?: () => Health["engine"];
  readonly stopping?: AbortSignal;
  /** Whether the store has a thread that reads, as a server's has. Without it, the start takes half as long. */
  readonly reads?: boolean;
  /** Replaces calls of the port that a caller gets, as by one that fails. */
  readonly around?: (evreg: ServicePort, caller: Principal) => Partial<ServicePort>;
}

/** The real store and service behind a real listener on a free port. */
export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const { engineState = () => "running", clock = systemClock, around = () => ({}) } = options;
  const local = await openLocalService({ engineState, serves: options.reads ?? true });
  const logger = new KeptLog();
  const app = createHttpApp({
    service: {
      ...local.service,
      as(caller, address) {
        const evreg = local.service.as(caller, address);
        return { ...evreg, ...around(evreg, caller) };
      },
    },
    config: {
      auth: { mode: "token", anonymousPublish: false, ...options.auth },
      limits: { payloadBytes: PAYLOAD_BYTES },
      ui: options.ui ?? { enabled: true },
      hasTokenFile: options.hasTokenFile ?? false,
    },
    logger,
    clock,
    version: VERSION,
    counts: new PublishCounts(),
    responses: options.answers ?? {},
    ...(options.bodyBytes === undefined ? {} : { bodyBytes: options.bodyBytes }),
    ...(options.stopping === undefined ? {} : { stopping: options.stopping }),
  });
  const listener = await serveHttp({ app, host: "127.0.0.1", port: 0, logger, limits: options.http ?? {} });
  return {
    url: listener.url,
    port: listener.port,
    listener,
    log: logger.lines,
    local,
    owner: local.evreg,
    async token(...scopes) {
      const { data } = await local.evreg.tokens.create({ name: scopes.join(" "), scopes });
      return data.token;
    },
    ask: (line, sent) => ask(listener.port, line, sent),
    async close() {
      await listener.close(0);
      await local.close();
    },
  };
}

/** By hand: `fetch` unpacks answers, follows redirects and sets `Host` itself. */
async function ask(port: number, line: string, { token, body, headers = {} }: Sent = {}): Promise<Got> {
  const [method, path] = line.split(" ") as [string, string];
  const all = {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...headers,
  };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const sent = Promise.withResolvers<IncomingMessage>();
  request({ host: "127.0.0.1", port, path, method, headers: all }, sent.resolve)
    .on("error", sent.reject)
    .end(text);
  const answer = await sent.promise;
  const bytes = await buffer(answer);
  const isJson = answer.headers["content-type"] === "application/json" && bytes.length > 0;
  return {
    status: answer.statusCode!,
    headers: answer.headers,
    bytes,
    body: isJson ? JSON.parse(bytes.toString()) : {},
  };
}
