import type { DeliveryStatus } from "../../domain/delivery.ts";
import type { DeliveryResult, StreamedEvent } from "../../domain/stream.ts";
import { type Cell, type Color, GrowingColumns } from "../io/growing-columns.ts";

/** So many characters are shown of a payload beside its event, where nothing cuts it. */
const PREVIEW_CHARACTERS = 2_000;

/** Shows the time of the day in UTC on a terminal, and all of it in a pipe. */
function timeCell(timestamped: string, width: number | undefined): Cell {
  return {
    text: width === undefined ? timestamped : timestamped.replace(/^.*T(.{8}).*$/, "$1Z"),
    color: "dim",
  };
}

/** `12:03:11Z  order.created  #72  shop  {"id":7}` */
export function eventLines(width: number | undefined): (event: StreamedEvent) => string {
  const columns = new GrowingColumns([Infinity, 32, Infinity, 16], width);
  return ({ rowid, action, application, timestamped, payload }) =>
    columns.line([
      timeCell(timestamped, width),
      { text: action },
      { text: `#${rowid}` },
      { text: application, color: "dim" },
      { text: payload?.text().slice(0, PREVIEW_CHARACTERS).replaceAll(/\s+/g, " ") ?? "" },
    ]);
}

/** `12:03:11Z  order.created  #72  → billing/invoices  waiting  500  12 ms` */
export function resultLines(width: number | undefined): (result: DeliveryResult) => string {
  // At 80 columns what became of it has room for the longest error.
  const limits = width === undefined || width > 90 ? [18, 22] : [13, 20];
  const columns = new GrowingColumns([Infinity, limits[0]!, Infinity, limits[1]!], width);
  return (result) => {
    const { event_id: event, action, application, subscription, timestamped, status } = result;
    return columns.line([
      timeCell(timestamped, width),
      { text: action },
      { text: `#${event}` },
      { text: `→ ${application}/${subscription}` },
      {
        text: outcomeOf(result),
        color: COLORS[status] ?? "yellow",
      },
    ]);
  };
}

const COLORS: Partial<Record<DeliveryStatus, Color>> = {
  delivered: "green",
  failed: "red",
  filtered: "dim",
  cancelled: "dim",
};

function outcomeOf(result: DeliveryResult): string {
  const { status, status_code: code, error_code: error, duration_ms: ms } = result;
  const answer = code ?? error;
  // An answer that delivered says so.
  const word = status === "delivered" && typeof code === "number" ? undefined : status;
  const parts = [word, answer, ms === null || ms === undefined ? undefined : `${ms.toLocaleString("en")} ms`];
  return parts.filter((part) => part !== undefined && part !== null).join("  ");
}
