import { openLocal } from "../../src/app/server.ts";
import { defaultConfig } from "../../src/config/load.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { answerCalls } from "./calls.ts";
import { BATCH_ITEMS, payloadOf, SCHEMA, WAITING_ACTION } from "./workload.ts";

// Works on a data folder that no server has, as a command does: what is published here waits for the next server.

interface Filling {
  readonly folder: string;
  /** Of the database that has the data in the folder's place. */
  readonly database: string | undefined;
  /** Each gets a subscription of its own. */
  readonly handlers: readonly string[];
  readonly events: number;
}

async function fill({ folder, database, handlers, events }: Filling): Promise<void> {
  const defaults = defaultConfig(folder);
  const config = {
    ...defaults,
    data: folder,
    database: { ...defaults.database, ...(database === undefined ? {} : { url: database }) },
    delivery: { ...defaults.delivery, allowHttp: true, allowNetworks: ["127.0.0.0/8"] },
  };
  const evreg = await openLocal({ config, version: "bench", logger: silentLogger, command: "bench fill" });
  const action = WAITING_ACTION;
  try {
    await known(evreg.actions.create({ action, application: "shop", schemata: SCHEMA }));
    for (const [number, handler] of handlers.entries()) {
      const named = { application: "billing", subscription: `backlog-${number}`, action };
      await known(evreg.subscriptions.create({ ...named, handler }));
    }
    for (let done = 0; done < events; done += BATCH_ITEMS) {
      const items = Array.from({ length: Math.min(BATCH_ITEMS, events - done) }, (_, item): NewEvent => ({
        action,
        payload: RawJson.fromText(payloadOf(done + item)),
      }));
      const { meta } = await evreg.events.publishBatch(items);
      if (meta.accepted !== items.length) throw new Error(`${meta.rejected} items of a batch were refused.`);
    }
  } finally {
    await evreg.close();
  }
}

/** Whether it was there before does not matter. */
async function known(creating: Promise<unknown>): Promise<void> {
  await creating.catch((error: unknown) => {
    if (!(error instanceof EvregError) || error.code !== "conflict") throw error;
  });
}

const calls = { fill };
export type FillCalls = typeof calls;

answerCalls(calls);
