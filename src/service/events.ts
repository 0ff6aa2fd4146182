import type { Schemata } from "../domain/action.ts";
import { type Delivery, DELIVERY_LIMITS } from "../domain/delivery.ts";
import { EvregError, messageOf } from "../domain/error.ts";
import { type Event, EVENT_LIMITS, EVENT_QUERY, type EventQuery, type PageMeta } from "../domain/event.ts";
import { malformedField } from "../domain/request.ts";
import type { EventsPort } from "../evreg.ts";
import { parseJson } from "../json/raw-json.ts";
import type { EventSelection, StoredEvent } from "../store/events.ts";
import type { DeliverySelection } from "../store/queue.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import { allOf, checkId, checkQuery, finder, omitUndefined, pagesOf, timeRange } from "./requests.ts";
import { payloadOf } from "./stored-events.ts";

/** What a page of events is read by. */
export interface EventPartOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * Bytes of the payloads of a part, as they are stored; by default the page is one part. A part has at least one event.
   */
  readonly maxBytes?: number;
}

export interface EventPart {
  readonly data: readonly Event[];
  /** What is known of the page, as far as it was read: all in the last part. */
  readonly meta: PageMeta;
  readonly isLast: boolean;
}

const eventFinder = ({ store }: ServiceContext, access: Access) =>
  finder(access, "event", (id: number) => store.events.find(checkId(id)));

/** Where one event went. */
export async function* eventDeliveryPages(
  context: ServiceContext,
  access: Access,
  id: number,
): AsyncGenerator<readonly Delivery[], void, void> {
  await eventFinder(context, access).readable(id);
  const applications = access.readable();
  const limit = DELIVERY_LIMITS.listMax;
  yield* pagesOf(limit, (last: Delivery | undefined) => {
    const selection = { event: id, applications, limit, after: last?.rowid };
    return context.store.queue.list(omitUndefined<DeliverySelection>(selection));
  });
}

/** Adds the counts of their deliveries, where the query asks for them. */
async function shown(
  { store }: ServiceContext,
  events: readonly StoredEvent[],
  { deliveries = false }: EventQuery,
  { applications, payloads = true }: Pick<EventSelection, "applications" | "payloads">,
): Promise<readonly Event[]> {
  if (!deliveries || events.length === 0) return events.map((event) => eventOf(event, payloads));
  const ids = events.map(({ rowid }) => rowid);
  const counts = await store.events.countDeliveries(ids, applications);
  return events.map((event, index) => {
    return { ...eventOf(event, payloads), deliveries: counts[index] ?? {} };
  });
}

async function search(
  context: ServiceContext,
  access: Access,
  { where, ...query }: EventQuery & { readonly where: string },
  { page, ...selection }: EventSelection,
  signal: AbortSignal | undefined,
): ReturnType<EventsPort["list"]> {
  const request = { ...selection, where: schemaIn(where) };
  const found = await context.storedEvents.search(request, access.caller, signal);
  const { events, total, searched, next = null, warnings } = found;
  const meta = { total, page, per_page: selection.limit, searched, next, warnings };
  return { data: await shown(context, events, query, selection), meta };
}

/** One page of a list of events, in parts that need little memory each. A search is one part. */
export async function* eventParts(
  context: ServiceContext,
  access: Access,
  query: EventQuery,
  { signal, maxBytes }: EventPartOptions = {},
): AsyncGenerator<EventPart, void, void> {
  const { store } = context;
  const applications = access.readable();
  const { action, order = "desc", after, where } = checkQuery(EVENT_QUERY, query);
  const { page = 1, limit = EVENT_LIMITS.listDefault, payloads = true } = query;
  const selection = omitUndefined<EventSelection>({
    action,
    applications,
    idempotencyKey: query.idempotency_key,
    ...timeRange(query),
    order,
    limit,
    page,
    after,
    payloads,
    maxBytes,
  });
  if (query.page !== undefined && (after ?? where) !== undefined) {
    const what = after === undefined ? "where; go on with after" : "after, which replaces it";
    throw malformedField("page", `cannot be used together with ${what}`, query.page);
  }
  if (where !== undefined) {
    yield { ...(await search(context, access, { ...query, where }, selection, signal)), isLast: true };
    return;
  }
  const damaged: number[] = [];
  let part = await store.events.list(selection);
  const { total } = part;
  for (let left = limit; ;) {
    const { events, ids, isCut } = part;
    if (payloads) {
      damaged.push(...events.filter((event) => event.payload === undefined).map(({ rowid }) => rowid));
    }
    const meta = { total, page, per_page: limit, ...(damaged.length === 0 ? {} : { damaged }) };
    yield { data: await shown(context, events, query, selection), meta, isLast: !isCut };
    if (!isCut) return;
    left -= ids.length;
    part = await store.events.list({ ...selection, limit: left, after: ids.at(-1)!, total: false });
  }
}

/** Reading what was published; `publishing` is the rest of the port. */
export function eventReads(
  context: ServiceContext,
  access: Access,
): Omit<EventsPort, "publish" | "publishBatch"> {
  const { readable } = eventFinder(context, access);

  return {
    async list(query = {}, signal) {
      const { value } = await eventParts(context, access, query, { signal }).next();
      const { data, meta } = value!;
      return { data, meta };
    },
    async get(id) {
      const event = await readable(id);
      if (event.payload === undefined) throw damagedEvent(id);
      return { data: eventOf(event) };
    },
    async deliveries(id) {
      return { data: await allOf(eventDeliveryPages(context, access, id)) };
    },
  };
}

/** @throws `malformed` for what is no JSON or no object */
function schemaIn(where: string): Schemata {
  let value: unknown;
  try {
    value = parseJson(Buffer.from(where));
  } catch (error) {
    throw malformedField("where", `must be a JSON Schema as JSON: ${messageOf(error)}`, where);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Schemata;
  throw malformedField("where", 'must be a JSON Schema: an object such as {"required":["country"]}', where);
}

function eventOf({ rowid, action, payload, revision, timestamped }: StoredEvent, isWhole = true): Event {
  return { rowid, action, payload: payloadOf(isWhole ? payload : undefined), revision, timestamped };
}

function damagedEvent(id: number): EvregError {
  return new EvregError(
    "internal",
    `Event ${id} is damaged in the data file: its payload is not the one that was published, so it is not shown, and not sent. Restore a backup from before the damage; \`evreg backup\` lists what else is damaged.`,
    { event: id },
  );
}
