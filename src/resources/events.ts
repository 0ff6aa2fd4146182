import { type Column, ID_COLUMN } from "../cli/io/table.ts";
import type { Event } from "../domain/event.ts";

export const EVENT_LIST: readonly Column<Event>[] = [
  { ...ID_COLUMN, value: (event) => event.rowid },
  { title: "ACTION", value: (event) => event.action, shrinkTo: 12, keepWhole: true },
  { title: "PUBLISHED", value: (event) => event.timestamped, time: true },
  { title: "PAYLOAD", value: (event) => preview(event), shrinkTo: 12 },
];

export const EVENT_RECORD: readonly Column<Event>[] = [
  { title: "Event", value: (event) => event.rowid },
  { title: "Action", value: (event) => event.action },
  { title: "Revision", value: (event) => event.revision },
  { title: "Published", value: (event) => event.timestamped },
  { title: "Payload", value: (event) => event.payload.text(), block: true },
];

/** Without the payload, which the person who published it has just typed. */
export const PUBLISHED_RECORD = EVENT_RECORD.filter((column) => column.title !== "Payload");

/** A listing shows how a payload begins; `events get` and `--json` show all of it. */
const PREVIEW_BYTES = 240;

function preview(event: Event): string {
  const { bytes } = event.payload;
  const start = Buffer.from(bytes.subarray(0, PREVIEW_BYTES)).toString("utf8").replace(/\s+/g, " ");
  return bytes.length > PREVIEW_BYTES ? `${start.replace(/\ufffd+$/, "")}…` : start;
}
