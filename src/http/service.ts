import type { Principal } from "../domain/token.ts";
import type { Evreg } from "../evreg.ts";
import type { Clock } from "../runtime/clock.ts";
import type { PublishCounts } from "../runtime/publish-counts.ts";
import type { AnswerMemory } from "./answer-memory.ts";

/** What stands behind the routes: the port for whoever is asking, and the way to find out who that is. */
export interface HttpService {
  as(principal: Principal): Evreg;
  /** `undefined` for a token that is unknown, expired or revoked. At once for one that was seen before. */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined>;
}

/** The slice of the configuration that the routes depend on. */
export interface HttpConfig {
  readonly auth: {
    /** `off`: whoever reaches the listener may do everything. Only ever on loopback. */
    readonly mode: "token" | "off";
    /** Opens the two publish routes to callers without a token. */
    readonly anonymousPublish: boolean;
  };
  /** Whether the data folder has the file `token`, with a token that holds. */
  readonly hasTokenFile: boolean;
  readonly limits: { readonly payloadBytes: number };
  /** For one's own machine: no token needed, loopback callers only. */
  readonly dev: boolean;
}

/** Whether a server asks for a token: on the two publish routes, and on all others. */
export interface AsksForToken {
  readonly publish: boolean;
  readonly token: boolean;
}

/** What a route may know beside its request. */
export interface RouteContext {
  readonly limits: HttpConfig["limits"];
  readonly version: string;
  readonly asks: AsksForToken;
  /** Through which large reads go. */
  readonly memory: AnswerMemory;
  /** Told of what is refused. */
  readonly counts: PublishCounts;
  readonly clock: Clock;
  /** Aborted once the server is to stop, with what to say to whom would hold that up. */
  readonly stopping: AbortSignal;
}
