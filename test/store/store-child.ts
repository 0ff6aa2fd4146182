import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { claimRequest } from "../support/claim-request.ts";
import { testOwner } from "./owner.ts";

// A process that owns a data folder. `hold` opens it and waits; `publish` records events, several calls at a time, and
// prints the rowid of each that was answered, until it is killed; `fill` does so until something is refused, and then
// prints what it saw.
const [mode = "", folder = ""] = process.argv.slice(2);
const PAYLOAD_BYTES = mode === "fill" ? 20_000 : 300;

function print(value: unknown): void {
  process.stdout.write(`${typeof value === "string" ? value : JSON.stringify(value)}\n`);
}

interface Seen {
  fatal?: string;
  /** The first refusal. */
  refused?: { readonly code: string; readonly message: string; readonly details: unknown };
}
const seen: Seen = {};

const store = await openLibsqlStore({
  folder,
  owner: testOwner(),
  logger: silentLogger,
  onFatal: (error) => {
    seen.fatal = error.message;
  },
}).catch((error: { code: string; message: string }) => {
  print({ code: error.code, message: error.message });
  process.exit(1);
});
print("open");

if (mode === "hold") {
  for await (const _ of process.stdin);
} else {
  const actionId = await prepare();
  await Promise.all([...Array.from({ length: 8 }, () => publish(actionId)), mode === "publish" && deliver()]);
  print({ ...seen.refused, condition: store.health(), fatal: seen.fatal });
}
await store.close();
process.exit(0);

async function prepare(): Promise<number> {
  const found = await store.catalog.findAction("a.b");
  if (found !== undefined) return found.rowid;
  const action = await store.catalog.createAction(
    { action: "a.b", application: "x", schemata: {} },
    Date.now(),
  );
  const subscription = { application: "x", subscription: "s", action: "a.b", handler: "https://h.example/" };
  await store.catalog.createSubscription(
    { ...subscription, maxRetries: 5, active: true, secret: "s" },
    Date.now(),
  );
  return action.rowid;
}

async function publish(actionId: number): Promise<void> {
  const payload = Buffer.from(JSON.stringify({ filler: "x".repeat(PAYLOAD_BYTES) }));
  try {
    for (;;) {
      const [outcome] = await store.events.record([{ actionId, revision: 1, payload }], Date.now());
      if (outcome?.kind === "recorded") print(outcome.rowid);
    }
  } catch (error) {
    const { code, message, details } = error as { code: string; message: string; details: unknown };
    seen.refused ??= { code, message, details };
  }
}

/** Leases five at a time and finishes one of them. */
async function deliver(): Promise<void> {
  for (;;) {
    const { claims } = await store.queue.claim(claimRequest({ nowMs: Date.now(), limit: 5 }));
    const [claimed] = claims;
    if (claimed === undefined) continue;
    const { deliveryId, claimId } = claimed;
    const result = { deliveryId, claimId, startedAtMs: Date.now(), durationMs: 1, statusCode: 200 };
    await store.queue.finish([{ ...result, ending: "delivered" }], Date.now());
  }
}
