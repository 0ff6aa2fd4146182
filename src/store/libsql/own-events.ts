import type { ServiceEventName, ServiceEventPayloads } from "../../domain/service-events.ts";
import type { ServiceEventCounts } from "../finishes.ts";
import { CALL_ROWS, recordEvents } from "./record-events.ts";
import type { Sql } from "./sql.ts";
import type { RecordCall } from "./messages.ts";

/** One that somebody awaits. */
export interface ServiceEvent {
  readonly action: AwaitedAction;
  readonly payload: ServiceEventPayloads[ServiceEventName];
  readonly nowMs: number;
}

interface AwaitedAction {
  readonly id: number;
  readonly revision: number;
  /** Active subscriptions now; one at least. */
  readonly subscribers: number;
}

/** The action of this name if it is the service's own and somebody gets its events now. */
export function awaited(sql: Sql, name: ServiceEventName): AwaitedAction | undefined {
  const action = sql.first<AwaitedAction>(
    `SELECT a.rowid AS id, a.revision, (SELECT count(*) FROM subscription AS s
          WHERE s.action_id = a.rowid AND s.active = 1 AND s.deleted_ms IS NULL) AS subscribers
      FROM action AS a WHERE a.action = ? AND a.built_in = 1`,
    name,
  );
  return action === undefined || action.subscribers === 0 ? undefined : action;
}

/** As published events are. Each is a call of its own, as such a one is never deferred. */
export function recordOwn(sql: Sql, events: readonly ServiceEvent[]): ServiceEventCounts | undefined {
  if (events.length === 0) return undefined;
  const payloads = events.map(({ payload }) => Buffer.from(JSON.stringify(payload)));
  let offset = 0;
  const calls = events.map(({ action, nowMs }, index): RecordCall => {
    const length = payloads[index]!.byteLength;
    const call = { nowMs, atomic: false, rows: [action.id, action.revision, offset, length] };
    offset += length;
    return call;
  });
  const outcomes = recordEvents(sql, calls, Buffer.concat(payloads)).flat();
  const deliveries = outcomes.map((outcome) => (outcome.kind === "recorded" ? outcome.deliveries : 0));
  return { events: events.length, deliveries: deliveries.reduce((sum, one) => sum + one, 0) };
}

/**
 * How many events one transaction may tell: as many as come to the rows that one call may publish, each with a delivery to
 * everybody who awaits it. What it does not admit is left to another transaction, with what it would tell of.
 */
export class TellingLimit {
  readonly #sql: Sql;
  /** Rows that an event of each comes to. */
  readonly #rowsOf = new Map<ServiceEventName, number>();
  #rows = 0;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Whether these may be told as well. The first that anybody awaits always may. */
  admits(names: readonly ServiceEventName[]): boolean {
    const rows = names.reduce((sum, name) => sum + this.#rowsFor(name), 0);
    if (rows > 0 && this.#rows > 0 && this.#rows + rows > CALL_ROWS) return false;
    this.#rows += rows;
    return true;
  }

  #rowsFor(name: ServiceEventName): number {
    let rows = this.#rowsOf.get(name);
    if (rows === undefined) {
      const action = awaited(this.#sql, name);
      rows = action === undefined ? 0 : 1 + action.subscribers;
      this.#rowsOf.set(name, rows);
    }
    return rows;
  }
}
