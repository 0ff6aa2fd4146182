import type { Deprecation } from "../domain/action.ts";
import type { BatchResult, Event, PageMeta } from "../domain/event.ts";
import { type HeaderPair, type Chunks, ChunkWriter, type Reply } from "./response.ts";
import type { JsonSchema } from "./routes/route.ts";

/**
 * Above this many payload bytes an answer is put together as bytes: a string of it would be written twice over, and past
 * 512 MiB could not exist at all. Below, a string goes out in one write with the headers.
 */
const STRING_MAX_BYTES = 16 * 1024;
/** `head` and `tail` of one event, about and rather more. */
const AROUND_BYTES = 256;
/** For the last text of a document, taken at its longest. */
const ROOM_BYTES = 1_024;

/** The members that `head` and `tail` write. A member added to `Event` makes this line fail to compile. */
const WRITTEN: Record<keyof Event, true> = {
  rowid: true,
  action: true,
  payload: true,
  revision: true,
  timestamped: true,
};
void WRITTEN;

function head({ rowid, action }: Event): string {
  if (action !== lastAction.name) lastAction = { name: action, json: JSON.stringify(action) };
  return `{"rowid":${rowid},"action":${lastAction.json},"payload":`;
}

/** The events of an answer mostly have the same action. */
let lastAction = { name: "", json: '""' };

function tail(event: Event): string {
  return `,"revision":${event.revision},"timestamped":"${event.timestamped}"}`;
}

/** `{ data: Event }`, the payload's bytes as they came. */
export function eventReply(status: number, event: Event, headers?: readonly HeaderPair[]): Reply {
  const body = write('{"data":', [event], "}", event.payload.bytes.length);
  return headers === undefined ? { status, body } : { status, body, headers };
}

export function eventListReply(data: readonly Event[], meta: PageMeta): Reply {
  return { status: 200, body: writeList(data, `],"meta":${JSON.stringify(meta)}}`) };
}

/** 201 when all were accepted, 207 for some, 422 for none; that last one is a failure and has a failure's members too. */
export function batchReply({ data, errors, meta }: BatchResult, headers: readonly HeaderPair[] = []): Reply {
  const status = meta.rejected === 0 ? 201 : meta.accepted === 0 ? 422 : 207;
  const failure =
    status === 422 ? { error: noneAccepted(errors.length), details: { ...meta }, code: 422 } : {};
  const rest = JSON.stringify({ errors, meta, ...failure });
  const body = writeList(data, `],${rest.slice(1)}`);
  const all =
    meta.deprecated === undefined ? headers : [...headers, ...batchDeprecationHeaders(meta.deprecated)];
  return all.length === 0 ? { status, body } : { status, body, headers: all };
}

function noneAccepted(count: number): string {
  return `None of the events was stored; \`errors\` says of ${count === 1 ? "one" : count} what is wrong.`;
}

/** The bytes of their payloads. */
function payloadBytesOf(events: readonly (Event | null)[]): number {
  let bytes = 0;
  for (const event of events) bytes += event === null ? 0 : event.payload.bytes.length;
  return bytes;
}

function writeList(events: readonly (Event | null)[], end: string): string | Chunks {
  return write('{"data":[', events, end, payloadBytesOf(events));
}

function write(
  start: string,
  events: readonly (Event | null)[],
  end: string,
  payloadBytes: number,
): string | Chunks {
  if (payloadBytes <= STRING_MAX_BYTES) {
    let text = start;
    let comma = "";
    for (const event of events) {
      text += event === null ? `${comma}null` : comma + head(event) + event.payload.text() + tail(event);
      comma = ",";
    }
    return text + end;
  }
  const likelyBytes = payloadBytes + events.length * AROUND_BYTES + 3 * end.length + ROOM_BYTES;
  const writer = new ChunkWriter(likelyBytes);
  let text = start;
  let comma = "";
  for (const event of events) {
    if (event === null) text += `${comma}null`;
    else {
      writer.text(text + comma + head(event));
      writer.bytes(event.payload.bytes);
      text = tail(event);
    }
    comma = ",";
  }
  writer.text(text + end);
  return writer.end();
}

/**
 * The headers of RFC 9745: since when, and what to use instead, as a link relative to the address of the request.
 * @param base from the request's folder to that of `actions/`
 */
export function deprecationHeaders(
  { since, successor }: Pick<Deprecation, "since" | "successor">,
  base: "" | "../" = "",
): readonly HeaderPair[] {
  const seconds = Math.floor(Date.parse(since) / 1_000);
  const header: HeaderPair = ["deprecation", `@${seconds}`];
  if (successor === null) return [header];
  return [header, ["link", `<${base}actions/${successor}>; rel="successor-version"`]];
}

/**
 * Of several: since when the first of them is. Which they are, and what to use instead, is in the body.
 */
function batchDeprecationHeaders(deprecated: readonly Deprecation[]): readonly HeaderPair[] {
  const [first] = deprecated.toSorted((one, other) => Date.parse(one.since) - Date.parse(other.since));
  if (first === undefined) return [];
  const successor = deprecated.length === 1 ? first.successor : null;
  return deprecationHeaders({ since: first.since, successor }, "../");
}

/** For the OpenAPI document. */
export const DEPRECATION_HEADERS: Readonly<Record<string, JsonSchema>> = {
  Deprecation: {
    type: "string",
    pattern: "^@\\d+$",
    description: "Only of a deprecated action: since when, in seconds since the epoch (RFC 9745).",
  },
  Link: {
    type: "string",
    description: 'Only of a deprecated action with a successor: that, as `rel="successor-version"`.',
  },
};

const MINIMAL = /^return\s*=\s*(minimal|"minimal")\s*(;|$)/i;

/** Whether a `Prefer` header asks for a minimal answer (RFC 7240); other preferences are ignored. */
export function prefersMinimal(header: string | undefined): boolean {
  return header !== undefined && header.split(",").some((preference) => MINIMAL.test(preference.trim()));
}

export const MINIMAL_APPLIED: HeaderPair = ["preference-applied", "return=minimal"];

/** For the OpenAPI document: of the request … */
export const PREFER_HEADERS: Readonly<Record<string, JsonSchema>> = {
  Prefer: {
    type: "string",
    description: "`return=minimal` leaves the events out of the answer: `data` is then empty (RFC 7240).",
    examples: ["return=minimal"],
  },
};

/** … and of the answer. */
export const APPLIED_HEADERS: Readonly<Record<string, JsonSchema>> = {
  "Preference-Applied": {
    type: "string",
    enum: ["return=minimal"],
    description: "Only where it was asked for.",
  },
};
