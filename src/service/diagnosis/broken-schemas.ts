import { EvregError } from "../../domain/error.ts";
import { eventLoop } from "../../runtime/yielding.ts";
import { readSchemaSteps } from "../../schema/read.ts";
import type { CatalogStore } from "../../store/catalog.ts";
import type { ActionCache } from "../action-cache.ts";

/** An action to which nothing can be published, as its schema is not valid. */
export interface BrokenSchema {
  readonly action: string;
  readonly why: string;
}

/** Read at once, each of up to 256 KiB. */
const READ_ACTIONS = 20;
/** For all schemas: enough for thousands of ordinary ones. */
const READ_MS = 2_000;

/** What an older evreg, or something else that wrote to the file, left. Actions that were published to just now are well. */
export async function brokenSchemas(
  catalog: Pick<CatalogStore, "listActions">,
  actions: Pick<ActionCache, "get">,
): Promise<readonly BrokenSchema[]> {
  const endMs = performance.now() + READ_MS;
  const broken: BrokenSchema[] = [];
  for (let after = ""; ;) {
    const page = await catalog.listActions({ after, limit: READ_ACTIONS });
    for (const { action, schemata, retired } of page) {
      if (retired || actions.get(action) !== undefined) continue;
      try {
        await eventLoop.run(readSchemaSteps(schemata));
      } catch (error) {
        if (!(error instanceof EvregError)) throw error;
        broken.push({ action, why: error.message });
      }
    }
    const last = page.at(-1);
    if (last === undefined || page.length < READ_ACTIONS || performance.now() > endMs) return broken;
    after = last.action;
  }
}
