import { isIP } from "node:net";
import { createAddressRules, LOOPBACK_NETWORKS } from "./addresses.ts";
import { type EvregError, invalidField } from "./error.ts";
import { withoutUserInfo } from "./formats.ts";
import { SUBSCRIPTION_LIMITS } from "../model/subscription.ts";

export interface HandlerPolicy {
  /** Lets handlers be `http:`. */
  readonly allowHttp: boolean;
  /** CIDR blocks that handlers may be in although they are not globally routable. */
  readonly allowNetworks: readonly string[];
}

/**
 * Checks a subscription's handler: an absolute `https:` URL of at most 2,048 characters without user info or fragment,
 * whose host is no forbidden address. A host name is only looked up, and its addresses checked, at each connect.
 * @returns the text as given
 * @throws `invalid` with the field, and never with user info, which may be a password
 */
export function checkHandlerUrl(field: string, handler: unknown, policy: HandlerPolicy): string {
  const { text, url } = checkHandlerForm(field, handler);
  const refuse = (message: string): EvregError => invalidField(field, message, text);
  if (url.protocol === "http:" && !policy.allowHttp) {
    throw refuse(
      "must be an https: URL; http: is only for services whose configuration sets delivery.allowHttp, and for `evreg serve --dev` on one's own machine",
    );
  }
  const refusal = hostRefusal(url, policy.allowNetworks);
  if (refusal !== undefined) throw refuse(refusal);
  return text;
}

/** The part of `checkHandlerUrl` that holds under every policy. */
export function checkHandlerForm(field: string, handler: unknown): { text: string; url: URL } {
  if (typeof handler !== "string") throw invalidField(field, "must be a string, the handler's URL", handler);
  const { handlerLength: max } = SUBSCRIPTION_LIMITS;
  if (handler.length > max) {
    throw invalidField(field, `is ${handler.length} characters long; at most ${max} are allowed`);
  }
  const url = URL.canParse(handler) ? new URL(handler) : undefined;
  if (holdsUserInfo(handler, url)) {
    throw invalidField(field, "must not hold a user name or password; the delivery carries its own secret");
  }
  const refuse = (message: string): EvregError => invalidField(field, message, withoutUserInfo(handler));
  // The URL parser repairs all of these, and deliveries would go elsewhere than the stored text says.
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u0020\u007f-\u00a0\\]/.test(handler)) {
    throw refuse("must not hold spaces, control characters or backslashes; percent-encode them");
  }
  if (url === undefined || !handler.isWellFormed() || !/^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(handler)) {
    throw refuse("must be an absolute URL such as https://example.com/webhooks");
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw refuse(`must be an https: URL, not ${url.protocol}`);
  }
  if (handler.includes("#")) throw refuse("must not hold a fragment (#…), which is never sent");
  if (url.port === "0") throw refuse("must not name port 0, which nothing can listen on");
  return { text: handler, url };
}

/** The literal address a URL's host is, without brackets, or `undefined` for a name. */
export function literalAddress(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return isIP(host) === 0 ? undefined : host;
}

/**
 * Whether a URL names a user. It does where that is empty (`https://@host`), and where the rest is no URL, as the text may
 * still hold a password.
 */
function holdsUserInfo(handler: string, url: URL | undefined): boolean {
  if (url !== undefined && url.username + url.password !== "") return true;
  return /^[^/?#]*[/\\]{2,}[^/?#\\]*@/.test(handler);
}

/** What is wrong with the host, as a sentence without its subject, or `undefined`. */
function hostRefusal(url: URL, allowNetworks: readonly string[]): string | undefined {
  const rules = createAddressRules(allowNetworks);
  const addresses = knownAddresses(url);
  const refused = addresses.map((address) => ({ address, reason: rules.refusal(address) }));
  const [first] = refused;
  // A name needs one allowed address here: each connect checks the address that it uses.
  if (first?.reason === undefined || refused.some(({ reason }) => reason === undefined)) return undefined;
  const { address, reason } = first;
  const length = address.includes(":") ? 128 : 32;
  const isLoopback = createAddressRules(LOOPBACK_NETWORKS).refusal(address) === undefined;
  const onOwnMachine = isLoopback ? "; on one's own machine `evreg serve --dev` allows loopback" : "";
  return `its host is not allowed: ${address} is ${reason}. Deliveries go to addresses on the public internet only; an operator can open others with delivery.allowNetworks, this one with ${address}/${length}${onOwnMachine}`;
}

/** The addresses of a host that are known without a lookup. */
function knownAddresses(url: URL): readonly string[] {
  const literal = literalAddress(url);
  if (literal !== undefined) return [literal];
  return isLocalhost(url.hostname) ? ["127.0.0.1", "::1"] : [];
}

/** Whether a name stands for loopback by RFC 6761, wherever it is looked up. */
export function isLocalhost(hostname: string): boolean {
  return /^(?:.*\.)?localhost\.?$/i.test(hostname);
}
