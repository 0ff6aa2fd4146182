import type { Actor } from "../domain/audit.ts";
import { EvregError } from "../domain/error.ts";
import { HOLDERS, parseScope, type Principal, type ScopeName } from "../domain/token.ts";

/** `true` for every application, else those it is limited to. */
type Reach = true | Set<string>;

/** Scopes named in a message. */
const MAX_NAMED = 3;

/**
 * What one principal may do. `admin` holds every scope, and `write` holds `listen`, a limited one for its application. What a principal may not read
 * does not exist for it, so that nobody can probe for it; to change or publish it is `forbidden`.
 */
export class Access {
  readonly principal: Principal;
  /** One value whenever one token is used; what it holds of what callers share counts under it. */
  readonly caller: unknown;
  /** What is kept of who makes a change. */
  readonly actor: Actor;
  readonly #reach = new Map<ScopeName, Reach>();

  /** @param address that it asks from, if it asks over a network */
  constructor(principal: Principal, address?: string) {
    this.principal = principal;
    this.caller = principal.tokenId ?? principal;
    this.actor = { name: principal.name, tokenId: principal.tokenId ?? null, address: address ?? null };
    for (const scope of principal.scopes) {
      const parsed = parseScope(scope);
      // A scope of a later version that is not known here gives nothing.
      if (parsed === undefined) continue;
      const { name, application } = parsed;
      const known = this.#reach.get(name);
      if (application === undefined || known === true) this.#reach.set(name, true);
      else if (known === undefined) this.#reach.set(name, new Set([application]));
      else known.add(application);
    }
  }

  /** @param application left out: for every application */
  allows(scope: ScopeName, application?: string): boolean {
    return HOLDERS[scope].some((name) => this.#holds(name, application));
  }

  /** Whether it holds the scope for anything at all. */
  allowsSome(scope: ScopeName): boolean {
    return HOLDERS[scope].some((name) => this.#reach.has(name));
  }

  /** @throws `forbidden`, naming the action if given, unless the scope is held for that application */
  require(scope: ScopeName, application?: string, action?: string): void {
    if (!this.allows(scope, application)) throw this.#forbidden(scope, application, action);
  }

  /** Requires a scope for an application that the caller has named itself. */
  requireGiven(scope: ScopeName, application: string): void {
    if (!this.allows(scope, application)) throw this.#forbidden(scope, application, undefined, true);
  }

  /** @throws `forbidden`, naming the action if given, which need not exist, unless the scope is held for anything at all */
  requireSome(scope: ScopeName, action?: string): void {
    if (!this.allowsSome(scope)) throw this.#forbidden(scope, undefined, action);
  }

  /**
   * The applications that may be listed, `undefined` for all. @throws `forbidden` when there are none
   * @param application only that one, if it may be listed
   */
  readable(application?: string): readonly string[] | undefined {
    this.requireSome("read");
    if (application !== undefined) return this.allows("read", application) ? [application] : [];
    const applications = new Set<string>();
    for (const scope of ["read", "admin"] as const) {
      const reach = this.#reach.get(scope);
      if (reach === true) return undefined;
      for (const held of reach ?? []) applications.add(held);
    }
    return [...applications];
  }

  #holds(scope: ScopeName, application: string | undefined): boolean {
    const reach = this.#reach.get(scope);
    return reach === true || (application !== undefined && reach?.has(application) === true);
  }

  #forbidden(scope: ScopeName, application?: string, action?: string, isGiven = false): EvregError {
    // The name of an application that may not be read is not disclosed.
    const named = application !== undefined && (isGiven || this.allows("read", application));
    const needed = named ? `${scope}:${application}` : scope;
    let where = "";
    if (application !== undefined && !named) where = " for the application it belongs to";
    else if (application === undefined && this.allowsSome(scope)) where = " not limited to an application";
    const what = action === undefined ? "This" : `The action ${action}`;
    return new EvregError(
      "forbidden",
      `${what} needs the scope ${needed}${where}; ${JSON.stringify(this.principal.name)} ${this.#held()}. Use a token that holds it.`,
      { scope: needed },
    );
  }

  #held(): string {
    const { scopes } = this.principal;
    if (scopes.length === 0) return "holds none";
    const more = scopes.length - MAX_NAMED;
    return `holds only ${scopes.slice(0, MAX_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  }
}
