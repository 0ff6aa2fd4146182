import { EvregError } from "../domain/error.ts";
import { LOCAL_OWNER, type Principal } from "../domain/token.ts";
import type { ServicePort } from "../service/service.ts";
import type { ApiRequest } from "./request.ts";
import type { RouteAccess, HttpConfig, HttpService } from "./routes/route.ts";

const BEARER = /^Bearer +([\w.~+/-]+=*) *$/i;

/** May ask for what is open to everyone, and nothing else. */
const NOBODY: Principal = { name: "nobody", scopes: [] };
const ANONYMOUS_PUBLISHER: Principal = { name: "anonymous", scopes: ["publish"] };

/** Who makes a request. */
export interface Caller {
  readonly principal: Principal;
  /** All of its requests have this one. */
  readonly port: ServicePort;
}

const WITHOUT_TOKEN =
  "; whoever has none can do so on the server's machine, with the server stopped and --data naming its folder.";

/** Throws `unauthorized` or `forbidden`. */
type Authenticate = (request: ApiRequest, access: RouteAccess) => Caller | Promise<Caller>;

export function createAuthenticate(service: HttpService, config: HttpConfig): Authenticate {
  const callers = new WeakMap<Principal, Caller>();
  const withoutToken = config.auth.mode === "off";

  function callerOf(principal: Principal): Caller {
    let caller = callers.get(principal);
    if (caller === undefined) callers.set(principal, (caller = { principal, port: service.as(principal) }));
    return caller;
  }

  function byToken(header: string): Caller | Promise<Caller> {
    const token = BEARER.exec(header)?.[1];
    if (token === undefined) {
      throw new EvregError(
        "unauthorized",
        "The `Authorization` header is not `Bearer <token>`; send a token in that form.",
      );
    }
    const answer = service.tokens.authenticate(token);
    return answer instanceof Promise ? answer.then(admitted) : admitted(answer);
  }

  function admitted(principal: Principal | undefined): Caller {
    if (principal !== undefined) return callerOf(principal);
    throw new EvregError(
      "unauthorized",
      withoutToken
        ? "The token is not one of this server's. It asks for none: leave the `Authorization` header out."
        : `The token is unknown, expired or revoked. With an admin token, \`evreg tokens\` lists those that are valid and \`evreg tokens create\` makes one${WITHOUT_TOKEN}`,
    );
  }

  return (request, access) => {
    if (withoutToken) checkLoopbackCaller(request, access === "open");
    if (access === "open") return callerOf(NOBODY);
    const header = request.header("authorization");
    // A bad token is never taken for no token: whoever sends one means to be held to it.
    if (header !== undefined) return byToken(header);
    if (withoutToken) return callerOf(LOCAL_OWNER);
    if (access === "publish" && config.auth.anonymousPublish) return callerOf(ANONYMOUS_PUBLISHER);
    throw new EvregError(
      "unauthorized",
      config.hasTokenFile
        ? "This needs a token: send `Authorization: Bearer <token>`. The first one is in the file `token` of the server's data folder."
        : `This needs a token: send \`Authorization: Bearer <token>\`. With an admin token, \`evreg tokens create\` makes one${WITHOUT_TOKEN}`,
    );
  };
}

const LOOPBACK_AUTHORITY = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * Where no token is needed, a web page in this machine's browser must not be able to act: a name of its own that it
 * points at 127.0.0.1 shows in `Host`, a form or script it sends from elsewhere shows in `Origin`, and what it only loads,
 * as an image or by a link, in `Sec-Fetch-Site`. `forbidden` for each of them.
 * @param isOpen for what anybody may load, and which costs nothing
 */
function checkLoopbackCaller(request: ApiRequest, isOpen: boolean): void {
  const host = request.header("host");
  if (host === undefined || !LOOPBACK_AUTHORITY.test(host)) {
    throw new EvregError(
      "forbidden",
      "This server asks for no token, so it answers only requests for localhost, 127.0.0.1 or [::1]: address it by one of these, or turn token authentication on.",
      { host: (host ?? "").slice(0, 255) },
    );
  }
  const origin = request.header("origin");
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) {
    throw new EvregError("forbidden", "A web page of another origin may not use this server.", {
      origin: origin.slice(0, 255),
    });
  }
  if (!isOpen && FOREIGN_SITES.has(request.header("sec-fetch-site"))) {
    throw new EvregError(
      "forbidden",
      "A web page of another site may not use this server. Type the address into the browser yourself, or use a program.",
    );
  }
}

/** `none` is what a person typed, and programs send nothing. A page of another port is `same-site`, and no less foreign. */
const FOREIGN_SITES: ReadonlySet<string | undefined> = new Set(["cross-site", "same-site"]);
