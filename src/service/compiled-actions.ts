import { LRUCache } from "lru-cache";
import type { Deprecation } from "../domain/action.ts";
import { toIso } from "../runtime/clock.ts";
import { eventLoop } from "../runtime/yielding.ts";
import { compileSchemaSteps } from "../schema/validate/compile.ts";
import type { Store } from "../store/store.ts";
import type { CompiledSchema } from "./payload-checks.ts";

/** What publishing needs of an action. */
export interface LoadedAction extends CompiledSchema {
  readonly actionId: number;
  readonly application: string;
  readonly revision: number;
  /** Only evreg itself publishes it. */
  readonly isBuiltIn: boolean;
  /** Whether anybody may publish to it. */
  readonly takesEvents: boolean;
  /** What to publish to instead. */
  readonly successor: string | null;
  /** What is said of it while it is deprecated. */
  readonly deprecation: Deprecation | undefined;
}

interface KeptAction {
  readonly action: LoadedAction;
  /** Nothing was changed since, where this is still that of the cache. */
  readonly version: number;
}

/** Thousands of ordinary compiled schemas, and some 50 of the largest. */
const MAX_COMPILED_BYTES = 128 * 1024 * 1024;

/**
 * Actions with their compiled schemas, so that publishing reads nothing from the store. An entry may be out of date: the
 * store then refuses the event as `stale`, and the caller says so and loads it again.
 */
export class ActionCache {
  readonly #store: Pick<Store, "catalog" | "node">;
  readonly #loaded = new LRUCache<string, KeptAction>({
    maxSize: MAX_COMPILED_BYTES,
    sizeCalculation: ({ action }) => action.validator.bytes,
  });
  readonly #loading = new Map<string, Promise<LoadedAction | undefined>>();
  #changes = 0;

  constructor(store: Pick<Store, "catalog" | "node">) {
    this.#store = store;
  }

  /** @throws EvregError `unavailable` while nobody knows here what others have changed */
  get(name: string): LoadedAction | undefined {
    const kept = this.#loaded.get(name);
    return kept?.version === this.#version() ? kept.action : undefined;
  }

  /** `undefined` when there is no such action. Callers that come together share one load. */
  load(name: string): Promise<LoadedAction | undefined> {
    const running = this.#loading.get(name);
    if (running !== undefined) return running;
    const version = this.#version();
    const loading: Promise<LoadedAction | undefined> = this.#read(name)
      .then((action) => {
        const isCurrent = action !== undefined && this.#loading.get(name) === loading;
        if (isCurrent) this.#loaded.set(name, { action, version });
        return action;
      })
      .finally(() => {
        if (this.#loading.get(name) === loading) this.#loading.delete(name);
      });
    this.#loading.set(name, loading);
    return loading;
  }

  /** Call it after each change of an action. All are read again; schemas stay compiled. */
  changed(): void {
    this.#changes += 1;
    this.#loading.clear();
  }

  /** Call it when the store found this one stale; many callers may find that out at once. */
  foundStale(name: string, action: LoadedAction): void {
    if (this.#loaded.get(name)?.action === action) this.changed();
  }

  /** Rises with each change, by whomever. */
  #version(): number {
    return this.#store.node.version() + this.#changes;
  }

  async #read(name: string): Promise<LoadedAction | undefined> {
    const stored = await this.#store.catalog.findAction(name);
    if (stored === undefined) return undefined;
    const { action, rowid: actionId, application, revision, isBuiltIn, retired, schemata } = stored;
    // It compiles in steps: the largest schemas take 100 ms, and all of a server's may come at once after a start.
    const before = this.#loaded.get(name)?.action;
    const isSame = before?.actionId === actionId && before.revision === revision;
    const validator = isSame ? before.validator : await eventLoop.run(compileSchemaSteps(schemata));
    const { deprecatedMs, successor } = stored;
    const deprecation = deprecatedMs === null ? undefined : { action, since: toIso(deprecatedMs), successor };
    const state = { isBuiltIn, takesEvents: !isBuiltIn && !retired, successor, deprecation };
    return { actionId, application, revision, schemata, validator, ...state };
  }
}
