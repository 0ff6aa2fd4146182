import type { Health } from "../../src/domain/operations.ts";
import type { Scope } from "../../src/domain/token.ts";
import type { Evreg } from "../../src/evreg.ts";
import { createHttpApp } from "../../src/http/app.ts";
import { PublishCounts } from "../../src/metrics/counters.ts";
import type { ResponseLimits } from "../../src/http/response-budget.ts";
import type { HttpConfig, HttpService } from "../../src/http/routes/route.ts";
import { type HttpLimits, type HttpListener, serveHttp } from "../../src/http/server.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import type { Logger } from "../../src/runtime/logger.ts";
import { type LocalService, openLocalService, PAYLOAD_BYTES } from "../support/local-service.ts";

export const VERSION = "0.0.0-test";

interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Harness {
  readonly url: string;
  readonly port: number;
  readonly listener: HttpListener;
  readonly log: readonly LogLine[];
  readonly local: LocalService;
  /** As whoever holds the data folder, past HTTP. */
  readonly owner: Evreg;
  /** A token with these scopes. */
  token(...scopes: Scope[]): Promise<string>;
  close(): Promise<void>;
}

export interface HarnessOptions {
  readonly auth?: Partial<HttpConfig["auth"]>;
  readonly ui?: HttpConfig["ui"];
  readonly dev?: boolean;
  readonly hasTokenFile?: boolean;
  readonly http?: Partial<HttpLimits>;
  readonly answers?: Partial<ResponseLimits>;
  readonly bodyBytes?: number;
  readonly clock?: Clock;
  readonly engineState?: () => Health["engine"];
  readonly stopping?: AbortSignal;
  /** Whether the store has a thread that reads, as a server's has. Without it, the start takes half as long. */
  readonly reads?: boolean;
  /** Puts something in front of the real service, such as a call that fails. */
  readonly around?: (service: HttpService) => HttpService;
}

/** The real store and service behind a real listener on a free port. */
export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const { engineState = () => "running", clock = systemClock, around = (service) => service } = options;
  const local = await openLocalService({ engineState, serves: options.reads ?? true });
  const { log, logger } = recordingLogger();
  const app = createHttpApp({
    service: around(local.service),
    config: {
      auth: { mode: "token", anonymousPublish: false, ...options.auth },
      limits: { payloadBytes: PAYLOAD_BYTES },
      ui: options.ui ?? { enabled: true },
      dev: options.dev ?? false,
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
    log,
    local,
    owner: local.evreg,
    async token(...scopes) {
      const { data } = await local.evreg.tokens.create({ name: scopes.join(" "), scopes });
      return data.token;
    },
    async close() {
      await listener.close(0);
      await local.close();
    },
  };
}

function recordingLogger(): { log: LogLine[]; logger: Logger } {
  const log: LogLine[] = [];
  const at =
    (level: LogLine["level"]) =>
    (fields: object, message: string): void => {
      log.push({ level, message, fields: fields as Record<string, unknown> });
    };
  return {
    log,
    logger: {
      isDebugEnabled: true,
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
    },
  };
}
