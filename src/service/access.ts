import { EvregError } from "../domain/error.ts";
import { parseScope } from "../domain/scope.ts";
import type { Principal, ScopeName } from "../domain/token.ts";

/** `true` for every application, else those it is limited to. */
type Reach = true | ReadonlySet<string>;

/** As many applications as a sentence can hold. */
const MOST_NAMED = 3;

/**
 * What one principal may do. `admin` holds every scope (a limited one for its application); the others hold only
 * themselves. What lies outside a principal's reach to read is answered as if it did not exist, so that nobody can probe
 * for it; changing or publishing to something outside one's reach is `forbidden`.
 */
export class Access {
  readonly principal: Principal;
  readonly #reach: ReadonlyMap<ScopeName, Reach>;

  constructor(principal: Principal) {
    this.principal = principal;
    this.#reach = reachOf(principal.scopes);
  }

  /** @param application left out: for every application */
  allows(scope: ScopeName, application?: string): boolean {
    return this.#holds(scope, application) || this.#holds("admin", application);
  }

  /** Whether it holds the scope for anything at all. */
  allowsSome(scope: ScopeName): boolean {
    return this.#reach.has(scope) || this.#reach.has("admin");
  }

  /**
   * @param action the one it is about, to be named
   * @throws `forbidden` naming the scope, unless it is held for that application
   */
  require(scope: ScopeName, application?: string, action?: string): void {
    if (!this.allows(scope, application)) throw this.#forbidden(scope, application, action);
  }

  /** @throws `forbidden` unless the scope is held for anything at all */
  requireSome(scope: ScopeName): void {
    if (!this.allowsSome(scope)) throw this.#forbidden(scope);
  }

  /**
   * The applications a listing is limited to, `undefined` for no limit.
   * @throws `forbidden` when nothing at all may be read
   */
  readable(): readonly string[] | undefined {
    this.requireSome("read");
    const applications = new Set<string>();
    for (const scope of ["read", "admin"] as const) {
      const reach = this.#reach.get(scope);
      if (reach === true) return undefined;
      for (const application of reach ?? []) applications.add(application);
    }
    return [...applications];
  }

  #holds(scope: ScopeName, application: string | undefined): boolean {
    const reach = this.#reach.get(scope);
    return reach === true || (reach !== undefined && application !== undefined && reach.has(application));
  }

  #forbidden(scope: ScopeName, application?: string, action?: string): EvregError {
    // The name of an application that may not be read is not given away either.
    const named = application !== undefined && this.allows("read", application);
    const needed = named ? `${scope}:${application}` : scope;
    let where = "";
    if (application !== undefined && !named) where = " for the application it belongs to";
    else if (application === undefined && this.allowsSome(scope)) where = " not limited to an application";
    const what = action === undefined ? "This" : `The action ${action}`;
    return new EvregError(
      "forbidden",
      `${what} needs the scope ${needed}${where}; ${JSON.stringify(this.principal.name)} ${this.#heldInstead(scope)}. Use a token that holds it.`,
      { scope: needed },
    );
  }

  #heldInstead(scope: ScopeName): string {
    const reach = this.#reach.get(scope);
    if (reach === undefined || reach === true) return "does not hold it";
    if (reach.size > MOST_NAMED) return `holds it only for ${reach.size} other applications`;
    return `holds only ${[...reach].map((application) => `${scope}:${application}`).join(", ")}`;
  }
}

function reachOf(scopes: readonly string[]): ReadonlyMap<ScopeName, Reach> {
  const reach = new Map<ScopeName, true | Set<string>>();
  for (const scope of scopes) {
    // A scope of a later version that is not known here gives nothing.
    const parsed = parseScope(scope);
    if (parsed === undefined) continue;
    const { name, application } = parsed;
    const known = reach.get(name);
    if (application === undefined || known === true) reach.set(name, true);
    else if (known === undefined) reach.set(name, new Set([application]));
    else known.add(application);
  }
  return reach;
}
