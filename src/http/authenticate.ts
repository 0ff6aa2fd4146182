import { EvregError } from "../domain/error.ts";
import { TOKEN_LENGTH } from "../domain/token-form.ts";
import { LOCAL_OWNER } from "../domain/token.ts";
import type { Principal } from "../domain/token.ts";
import type { Evreg } from "../evreg.ts";
import type { Incoming } from "./incoming.ts";
import { checkLoopbackCaller } from "./loopback-guard.ts";
import type { Access } from "./route.ts";
import type { HttpConfig, HttpService } from "./service.ts";

const BEARER = /^Bearer +([\w.~+/-]+=*) *$/i;

/** May ask for what is open to everyone, and nothing else. */
const NOBODY: Principal = { name: "nobody", scopes: [] };
const ANONYMOUS_PUBLISHER: Principal = { name: "anonymous", scopes: ["publish"] };

/** As nearly every caller writes it, which is told without an expression. */
const USUAL = "Bearer ";

function tokenOf(header: string): string | undefined {
  if (header.length === USUAL.length + TOKEN_LENGTH && header.startsWith(USUAL))
    return header.slice(USUAL.length);
  return BEARER.exec(header)?.[1];
}

const WITHOUT_TOKEN =
  "; whoever has none can do so on the server's machine, with the server stopped and --data naming its folder.";

/** Answers the port to act on for the one who asks, or throws `unauthorized` or `forbidden`. */
export type Authenticate = (incoming: Incoming, access: Access) => Evreg | Promise<Evreg>;

export function createAuthenticate(service: HttpService, config: HttpConfig): Authenticate {
  const ports = new WeakMap<Principal, Evreg>();
  const withoutToken = config.dev || config.auth.mode === "off";

  function portOf(principal: Principal): Evreg {
    let port = ports.get(principal);
    if (port === undefined) ports.set(principal, (port = service.as(principal)));
    return port;
  }

  function byToken(header: string): Evreg | Promise<Evreg> {
    const token = tokenOf(header);
    if (token === undefined) {
      throw new EvregError(
        "unauthorized",
        "The `Authorization` header is not `Bearer <token>`; send a token in that form.",
      );
    }
    const found = service.authenticate(token);
    return found instanceof Promise ? found.then(portFor) : portFor(found);
  }

  function portFor(principal: Principal | undefined): Evreg {
    if (principal !== undefined) return portOf(principal);
    throw new EvregError(
      "unauthorized",
      withoutToken
        ? "The token is not one of this server's. It asks for none: leave the `Authorization` header out."
        : `The token is unknown, expired or revoked. With an admin token, \`evreg tokens\` lists those that are valid and \`evreg tokens create\` makes one${WITHOUT_TOKEN}`,
    );
  }

  return (incoming, access) => {
    if (withoutToken) checkLoopbackCaller(incoming, access === "open");
    if (access === "open") return portOf(NOBODY);
    const header = incoming.header("authorization");
    // A bad token is never taken for no token: whoever sends one means to be held to it.
    if (header !== undefined) return byToken(header);
    if (withoutToken) return portOf(LOCAL_OWNER);
    if (access === "publish" && config.auth.anonymousPublish) return portOf(ANONYMOUS_PUBLISHER);
    throw new EvregError(
      "unauthorized",
      config.hasTokenFile
        ? "This needs a token: send `Authorization: Bearer <token>`. The first one is in the file `token` of the server's data folder."
        : `This needs a token: send \`Authorization: Bearer <token>\`. With an admin token, \`evreg tokens create\` makes one${WITHOUT_TOKEN}`,
    );
  };
}
