import { type EventHandler, H3 } from "h3";
import { EvregError } from "../domain/error.ts";
import { inputSchema } from "../domain/request.ts";
import { ByteBudget } from "../runtime/byte-budget.ts";
import type { Clock } from "../runtime/clock.ts";
import type { PublishCounts } from "../metrics/counters.ts";
import type { Logger } from "../runtime/logger.ts";
import type { ServicePort } from "../service/service.ts";
import { type Caller, createAuthenticate } from "./auth.ts";
import { LiveStreams } from "./live-streams.ts";
import { OPENAPI_ROUTE, openApiDocument, ROUTES } from "./openapi.ts";
import { replyWithPage, seeOther, takesHtml } from "./page.ts";
import { ApiRequest, ClientDisconnected } from "./request.ts";
import { type ResponseLimits, ResponseBudget } from "./response-budget.ts";
import { type Chunks, PAGE_PATH, type Reply, Responder } from "./response.ts";
import type { HttpConfig, HttpService, Route, RouteContext } from "./routes/route.ts";

export interface HttpAppOptions {
  readonly service: HttpService;
  readonly config: HttpConfig;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly version: string;
  readonly responses?: Partial<ResponseLimits>;
  /** What large bodies may have together. */
  readonly bodyBytes?: number;
  readonly counts: PublishCounts;
  readonly stopping?: AbortSignal;
}

/** Four of the largest batches at once. */
const BODY_BYTES = 64 * 1024 * 1024;

const NO_PARAMETERS = inputSchema("NoParameters", {});

const TOO_MANY_BODIES =
  "Too many large request bodies are being received at once, and there is no memory for this one. Send it again in a moment, and fewer at once; bodies up to 16 KiB are always accepted.";

/** The HTTP interface as an h3 app. Every path through it ends in the responder: one shape, one log line. */
export function createHttpApp(options: HttpAppOptions): H3 {
  const { service, config, logger, clock, version, counts } = options;
  const { stopping = new AbortController().signal } = options;
  const authenticate = createAuthenticate(service, config);
  const responses = new ResponseBudget(clock, options.responses);
  const bodies = new ByteBudget(clock, options.bodyBytes ?? BODY_BYTES, TOO_MANY_BODIES);
  const streams = new LiveStreams(clock, stopping, service.tokens);
  service.tokens.onRevoked = () => streams.checkAll();
  let document: Chunks | undefined;
  const context: RouteContext = {
    config,
    document: () => (document ??= [Buffer.from(JSON.stringify(openApiDocument(version, config.auth)))]),
    responses,
    counts,
    streams,
    stopping,
  };
  /** Changes are kept with the address that asks for them. */
  const portWithAddress = ({ principal }: Caller, request: ApiRequest): ServicePort =>
    service.as(principal, request.clientAddress);
  const responder = new Responder(logger, clock);
  /** @param refused called with why a request failed, unless its client left */
  const handlerOf =
    (
      act: (request: ApiRequest) => Reply | Promise<Reply>,
      refused?: (failure: unknown) => void,
    ): EventHandler =>
    async (event) => {
      const request = new ApiRequest(event, bodies, clock.monotonicMs());
      try {
        checkTarget(request);
        return responder.replied(request, await act(request));
      } catch (error) {
        if (!(error instanceof ClientDisconnected)) refused?.(error);
        return responder.failed(request, error);
      }
    };

  const app = new H3({
    // h3 would write failures to the console; they go to the log instead.
    silent: true,
    onError: (error, event) =>
      responder.failed(new ApiRequest(event, bodies, clock.monotonicMs()), outsideRoutes(error)),
  });

  const answerAt = (method: Route["method"], path: string, handler: EventHandler): void => {
    app.on(method, path, handler);
    // The catch-all below would come before h3's own way from HEAD to GET.
    if (method === "GET") app.on("HEAD", path, handler);
  };
  /** What answers every method that has no handler of its own. */
  const refuseOthers = (path: string, allow: string): void => {
    app.all(
      path,
      handlerOf((request) => {
        throw new EvregError("method_not_allowed", `${request.method} is not possible here; ${allow} are.`, {
          allow,
        });
      }),
    );
  };

  for (const [path, routes] of Map.groupBy([...ROUTES, OPENAPI_ROUTE], (route) => route.path)) {
    for (const route of routes) {
      // Who published what is not kept.
      const isChange = route.method !== "GET" && route.access !== "publish";
      const act = (caller: Caller, request: ApiRequest): Reply | Promise<Reply> => {
        request.principal = caller.principal;
        request.readQuery(route.query ?? NO_PARAMETERS);
        return route.handle(isChange ? portWithAddress(caller, request) : caller.port, request, context);
      };
      const begin = (request: ApiRequest): Reply | Promise<Reply> => {
        const caller = authenticate(request, route.access);
        return caller instanceof Promise ? caller.then((known) => act(known, request)) : act(caller, request);
      };
      const refused =
        route.access === "publish" && route.body !== undefined
          ? (failure: unknown) => counts.countRefusal(failure)
          : undefined;
      answerAt(route.method, path, handlerOf(begin, refused));
    }
    refuseOthers(path, allowOf(routes));
  }
  if (config.ui.enabled) {
    const answerPage = handlerOf((request) => {
      // Nobody needs a token for it, and it is answered where the API is.
      void authenticate(request, "open");
      return replyWithPage(request);
    });
    for (const path of [PAGE_PATH, `${PAGE_PATH}/:file`]) {
      answerAt("GET", path, answerPage);
      refuseOthers(path, "GET, HEAD");
    }
    const answerRoot = handlerOf((request) => {
      if (!takesHtml(request.header("accept"))) notFound(request);
      void authenticate(request, "open");
      return seeOther(`${PAGE_PATH.slice(1)}/`);
    });
    answerAt("GET", "/", answerRoot);
  }
  app.all(
    "/**",
    handlerOf((request) => notFound(request)),
  );
  return app;
}

/** Paths that end so are where the page is. */
const FOLDERS: ReadonlySet<string> = new Set(["/", `${PAGE_PATH}/`]);

/** Refuses `/v1/actions/`, which the router takes for `/v1/actions`: the caller may have meant a name that is empty. */
function checkTarget(request: ApiRequest): void {
  if (request.path.endsWith("/") && !FOLDERS.has(request.path)) notFound(request);
  const { headers, httpVersion, rawHeaders } = request.nodeRequest;
  if (headers.host === undefined && httpVersion !== "1.0") {
    throw new EvregError("malformed", "The request has no `Host` header.");
  }
  // Node undoes this coding only, and would pass the others' bytes on as the body.
  if (!/^(?:chunked)?$/i.test(headers["transfer-encoding"] ?? "")) {
    throw new EvregError("malformed", "The only `Transfer-Encoding` that is taken is `chunked`.");
  }
  // Node keeps the first, and a proxy may have gone by the second (RFC 9112, 3.2).
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (isHost(rawHeaders[at]!)) hosts += 1;
  if (hosts > 1) throw new EvregError("malformed", "The request has more than one `Host` header.");
}

function isHost(name: string): boolean {
  return name.length === "host".length && name.toLowerCase() === "host";
}

function notFound(request: ApiRequest): never {
  const path = request.path.slice(0, 200);
  const next = path.startsWith("/v1/v1/")
    ? "leave /v1 off the server's address, as it is added to that anyway"
    : "/openapi.json lists what there is";
  throw new EvregError("not_found", `There is nothing at ${path}; ${next}.`, { path });
}

/** What h3 refuses before any route is reached. */
function outsideRoutes(error: { readonly status: number; readonly cause?: unknown }): unknown {
  if (error.status === 400) {
    return new EvregError("malformed", "The path of the address is not valid percent-encoded UTF-8.");
  }
  return error.cause ?? error;
}

function allowOf(routes: readonly Route[]): string {
  return routes.map(({ method }) => (method === "GET" ? "GET, HEAD" : method)).join(", ");
}
