import { isReservedName } from "../../../domain/names.ts";
import { SERVICE_EVENT_SCHEMAS, type ServiceEventName } from "../../../domain/service-events.ts";
import type { EventRecord } from "../../events.ts";
import type { Deactivated } from "../../queue.ts";
import { receiversOf } from "../catalog/matching.ts";
import type { Work } from "../operation.ts";
import { JOIN_NAMES } from "../queue/delivery-state.ts";
import { recordsOf, type Sql } from "../sql.ts";
import { recordEvents } from "./record.ts";

// A service event is recorded in the transaction of the write that it reports, if its action has an active subscription. Where
// none of these actions has one, that costs one query. Deliveries and subscriptions of such events are not reported: a handler that fails
// would make more of them without end.

interface ReportedChanges {
  readonly failed?: readonly number[];
  /** Deliveries that their subscriptions block for from now on. */
  readonly blocked?: readonly number[];
  readonly deactivated?: readonly Deactivated[];
}

/** Reports changes together, however many there are. */
export async function recordServiceEvents(
  work: Work,
  { failed = [], blocked = [], deactivated = [] }: ReportedChanges,
  nowMs: number,
): Promise<void> {
  if (failed.length + blocked.length + deactivated.length === 0) return;
  const subscribed = await loadSubscribedActions(work);
  if (subscribed.size === 0) return;
  const events: EventRecord[] = [];
  const report = async (
    name: ServiceEventName,
    subjects: string,
    ids: readonly number[],
    more: (row: Subject) => object,
  ): Promise<void> => {
    const action = subscribed.get(name);
    if (action === undefined || ids.length === 0) return;
    const payloadOf = recordsOf<object>(SERVICE_EVENT_SCHEMAS[name].properties);
    for (const row of await work.rows<Subject>(subjects, ids)) {
      if (isReservedName(row.action)) continue;
      const members = payloadOf({ ...row, handler_host: hostOf(row.handler), ...more(row) });
      const payload = Buffer.from(JSON.stringify(members));
      events.push({ ...action, payload });
    }
  };
  await report("evreg.delivery.failed", DELIVERIES, failed, () => ({ failed_at: nowMs }));
  await report("evreg.subscription.blocked", DELIVERIES, blocked, () => ({ blocked_at: nowMs }));
  const reasons = new Map(deactivated.map(({ subscriptionId, reason }) => [subscriptionId, reason]));
  await report("evreg.subscription.deactivated", SUBSCRIPTIONS, [...reasons.keys()], (row) => {
    return { reason: reasons.get(row.subscription_id), deactivated_at: nowMs };
  });
  if (events.length === 0) return;
  // They are recorded like published ones, as an atomic batch: all of them go in.
  const { outcomes } = await recordEvents(work, [{ atomic: true, nowMs, events }]);
  const deliveries = outcomes
    .flat()
    .reduce((sum, outcome) => sum + (outcome.kind === "recorded" ? outcome.deliveries : 0), 0);
  work.changes.push({ serviceEvents: { events: events.length, deliveries } });
}

/** What is reported on; its other members are named as those of payloads. */
interface Subject {
  readonly subscription_id: number;
  readonly action: string;
  readonly handler: string;
}

const SUBSCRIPTION = "s.rowid AS subscription_id, s.application, s.subscription, s.handler";
const SUBSCRIPTIONS = `SELECT ${SUBSCRIPTION}, s.action
  FROM list(?: id bigint) AS changed CROSS JOIN subscription AS s ON s.rowid = changed.id`;
/** SQL of deliveries and their subscriptions, with the actions of their events: that of a subscription may be a pattern. */
const DELIVERIES = `SELECT d.rowid AS delivery_id, d.event_id, ${SUBSCRIPTION}, a.action, d.attempt AS attempts, d.last_error,
    e.timestamped_ms AS published_at
  FROM list(?: id bigint) AS changed CROSS JOIN delivery AS d ON d.rowid = changed.id ${JOIN_NAMES}`;

type SubscribedActions = ReadonlyMap<ServiceEventName, Pick<EventRecord, "actionId" | "revision">>;

/** The service's own actions that have an active subscription. */
async function loadSubscribedActions(sql: Sql): Promise<SubscribedActions> {
  const actions = await sql.rows<{ name: ServiceEventName; actionId: number; revision: number }>(
    `SELECT a.action AS name, a.rowid AS actionId, a.revision FROM action AS a
      WHERE a.action BETWEEN 'evreg.' AND 'evreg/' AND a.built_in = 1
        AND EXISTS (SELECT 1 FROM ${receiversOf("a.rowid")})`,
  );
  return new Map(actions.map(({ name, ...action }) => [name, action]));
}

/** The path and query of an address may be secret. */
function hostOf(handler: string): string {
  return URL.canParse(handler) ? new URL(handler).host : "";
}
