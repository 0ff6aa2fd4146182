import { type Column, ID_COLUMN } from "../io/table.ts";
import { nextCommand } from "../target/next-command.ts";
import type { DeliveryCounts } from "../../domain/delivery.ts";
import { DELIVERY_STATUSES } from "../../model/delivery.ts";
import type { Event } from "../../domain/event.ts";
import { EVENT } from "../../model/event.ts";
import { linesOf, listOf, type RecordView, type ShownMembers } from "./view.ts";

const SHOWN: ShownMembers<Event> = { payload: { show: ({ payload }) => payload.text(), block: true } };

export const EVENTS = {
  noun: "event",
  plural: "events",
  record: linesOf(EVENT, SHOWN, ["rowid", "action", "revision", "timestamped"]),
  list: listOf(EVENT, SHOWN, {
    rowid: ID_COLUMN,
    action: { shrinkTo: 12, keepWhole: true },
    timestamped: { time: true },
    payload: { value: preview, shrinkTo: 12 },
  }),
  none: () => `No events yet. Publish one: ${nextCommand("publish ACTION PAYLOAD")}`,
} satisfies RecordView<Event>;

/** The list with the counts of each event's deliveries. */
export const LIST_WITH_DELIVERIES: readonly Column<Event>[] = EVENTS.list.toSpliced(-1, 0, {
  title: "DELIVERIES",
  value: ({ deliveries = {} }) => countsText(deliveries),
  color: ({ deliveries = {} }) => (deliveries.failed === undefined ? undefined : "red"),
  shrinkTo: 12,
});

/** `2 delivered, 1 waiting` */
function countsText(counts: DeliveryCounts): string {
  const counted = DELIVERY_STATUSES.filter((status) => counts[status] !== undefined);
  return counted.map((status) => `${counts[status]} ${status}`).join(", ") || "none";
}

/** The members without the payload, which the person who published it has just typed. */
export const PUBLISHED_RECORD = EVENTS.record.filter(({ block }) => block !== true);

/** A listing shows how a payload begins; `events get` and `--json` show all of it. */
const PREVIEW_BYTES = 240;

function preview(event: Event): string {
  const { bytes } = event.payload;
  const start = Buffer.from(bytes.subarray(0, PREVIEW_BYTES)).toString("utf8").replace(/\s+/g, " ");
  return bytes.length > PREVIEW_BYTES ? `${start.replace(/\ufffd+$/, "")}…` : start;
}
