import { LineCount } from "../json/fault.ts";
import { isNamed, nameOf } from "../json/node.ts";
import type { JsonNode } from "../json/node.ts";
import { ENVELOPE_LEVELS } from "../json/parse.ts";
import type { ScanOptions } from "../json/scan-options.ts";
import { scanJsonSlowly } from "../json/scanner.ts";
import type { Breather } from "../json/scanner.ts";
import { EvregError, invalidField } from "./error.ts";
import { EVENT_LIMITS } from "./event.ts";
import type { NewEvent } from "./event.ts";
import { checkedItemOf, itemOf, RECORDED_MEMBERS, unknownMember } from "./publish-body.ts";
import type { PublishLimits } from "./publish-body.ts";

const BATCH_PARTS = [RECORDED_MEMBERS, EVENT_LIMITS.batchItems, RECORDED_MEMBERS];
/** `{ "events": [ { "payload": … } ] }`, all of it held to the limits at once. What is wider may be too large anyway. */
const BATCH: ScanOptions = { envelopeLevels: ENVELOPE_LEVELS, record: BATCH_PARTS, maxKeys: 2_000 };
/** Only the envelope: each item is to be held to its own limits. */
const ENVELOPE: ScanOptions = { maxNesting: 10_000, record: BATCH_PARTS, strictLevels: 2 };

/**
 * The body of `POST /v1/events/batch`: `{ events: [item, …] }`, 1 to 1,000 items. An item that cannot be taken is its
 * error in its place: a bad member, a payload too large, and also duplicate keys, nesting or lone surrogates inside it.
 * @param pace lets other work in during the long run that a full batch takes
 * @throws `malformed` when the body is not JSON at all, `invalid` when it is no batch
 */
export async function parseBatchBody(
  bytes: Uint8Array,
  limits: PublishLimits,
  pace: Breather,
): Promise<(NewEvent | EvregError)[]> {
  const lines = new LineCount();
  const whole = await scanWhole(bytes, lines, pace);
  // Where something is wrong, with all of it or with some of the items, each is held to the rules by itself.
  const root = whole ?? (await scanJsonSlowly(bytes, ENVELOPE, pace));
  const take = (item: JsonNode): NewEvent | Promise<NewEvent> =>
    whole === undefined ? checkedItemOf(bytes, item, limits, { lines, pace }) : itemOf(bytes, item, limits);
  const items: (NewEvent | EvregError)[] = [];
  for (const item of itemsOf(bytes, root)) {
    if (whole !== undefined && !pace.mayGoOn()) await pace.breathe();
    try {
      const taken = take(item);
      items.push(taken instanceof Promise ? await taken : taken);
    } catch (error) {
      if (!(error instanceof EvregError)) throw error;
      items.push(error);
    }
  }
  return items;
}

/** `undefined` when it breaks a rule, in whatever part. */
async function scanWhole(bytes: Uint8Array, lines: LineCount, pace: Breather): Promise<JsonNode | undefined> {
  try {
    return await scanJsonSlowly(bytes, { ...BATCH, lines }, pace);
  } catch (error) {
    if (error instanceof EvregError) return undefined;
    throw error;
  }
}

function itemsOf(bytes: Uint8Array, root: JsonNode): readonly JsonNode[] {
  if (root.kind !== "object") throw invalidField("body", "must be an object with a list of events", null);
  for (const member of root.children) {
    if (isNamed(bytes, member, "events")) continue;
    throw unknownMember(nameOf(bytes, member), "the body of a batch is { events: [ … ] }");
  }
  const [events] = root.children;
  if (events === undefined) throw invalidField("events", "is required");
  if (events.kind !== "array") throw invalidField("events", "must be a list");
  if (events.count < 1 || events.count > EVENT_LIMITS.batchItems) {
    const most = EVENT_LIMITS.batchItems.toLocaleString("en");
    throw invalidField("events", `must have 1 to ${most} items, not ${events.count.toLocaleString("en")}`);
  }
  return events.children;
}
