import { type Column, ID_COLUMN } from "../io/table.ts";
import type { Attempt, Delivery, SubscriptionAttempt } from "../../domain/delivery.ts";
import { ATTEMPT, DELIVERY } from "../../model/delivery.ts";
import { linesOf, listOf, type RecordView, type ShownMembers } from "./view.ts";
import { nextCommand } from "../target/next-command.ts";
import type { Replay, ReplayCount } from "../../domain/replay.ts";
import { REPLAY, REPLAY_COUNT } from "../../model/replay.ts";

const SHOWN: ShownMembers<Delivery> = {
  subscription: (delivery) => `${delivery.subscription_id} ${subscriptionOf(delivery)}`,
  status: { color: colorOf },
};

const LINES = ["rowid", "event_id", "action", "subscription"] as const;

export const DELIVERIES = {
  noun: "delivery",
  plural: "deliveries",
  record: linesOf(DELIVERY, SHOWN, LINES),
  list: listOf(DELIVERY, SHOWN, {
    rowid: ID_COLUMN,
    event_id: { align: "right", dropOrder: 3 },
    action: { shrinkTo: 10, dropOrder: 4, keepWhole: true },
    subscription: { value: subscriptionOf, shrinkTo: 16 },
    status: {},
    attempt: { align: "right", dropOrder: 1 },
    next_attempt_at: {
      title: "NEXT OR END",
      value: (delivery) => delivery.next_attempt_at ?? delivery.finished_at,
      time: true,
      dropOrder: 2,
    },
    last_error: { shrinkTo: 10 },
  }),
  none: () => "No deliveries yet.",
} satisfies RecordView<Delivery>;

export const ATTEMPT_LIST = listOf<Attempt>(
  ATTEMPT,
  {
    outcome: {
      color: ({ outcome }) => ({ delivered: "green", failed: "red", returned: "yellow" } as const)[outcome],
    },
  },
  {
    attempt: { align: "right" },
    started_at: { title: "STARTED" },
    duration_ms: { title: "MS", align: "right" },
    dns_ms: { title: "DNS", align: "right", dropOrder: 1 },
    connect_ms: { title: "CONNECT", align: "right", dropOrder: 2 },
    first_byte_ms: { title: "FIRST BYTE", align: "right", dropOrder: 3 },
    outcome: {},
    status_code: { title: "ANSWER", value: answerOf },
    response: { title: "BODY", shrinkTo: 6 },
  },
);

export const SUBSCRIPTION_ATTEMPT_LIST: readonly Column<SubscriptionAttempt>[] = [
  { title: "DELIVERY", value: ({ delivery_id }) => delivery_id, align: "right" },
  { title: "EVENT", value: ({ event_id }) => event_id, align: "right", dropOrder: 4 },
  ...ATTEMPT_LIST,
];

function answerOf({
  status_code: status,
  error_code: error,
  tls_reason: tls,
}: Attempt): string | number | null {
  return status ?? (error === null || !tls ? error : `${error}: ${tls}`);
}

function colorOf({ status }: Delivery): "green" | "yellow" | "red" | "dim" {
  if (status === "delivered") return "green";
  if (status === "failed") return "red";
  return status === "filtered" || status === "cancelled" ? "dim" : "yellow";
}

/** The subscription that a record is of, by its application and name. */
export function subscriptionOf(record: Pick<Delivery, "application" | "subscription">): string {
  return `${record.application}/${record.subscription}`;
}

/** Beside the replay's own status, `failed` alone would read as that. */
const SELECTIONS = { failed: "had failed", waiting: "waited", missed: "were missed", all: "all" } as const;

/** The time from which on there is every event, for replays that need none. */
export const THE_BEGINNING = "1970-01-01T00:00:00.000Z";

const COUNT_SHOWN = {
  subscription: (replay: Replay | ReplayCount) => `${replay.subscription_id} ${subscriptionOf(replay)}`,
  selection: ({ selection }: Replay | ReplayCount) => SELECTIONS[selection],
  from: ({ from }: Replay | ReplayCount) => (from === THE_BEGINNING ? "the first event" : from),
};

const SHOWN_REPLAY: ShownMembers<Replay> = {
  ...COUNT_SHOWN,
  total: ({ total }) => total ?? "not counted yet",
  status: { color: replayColor },
  skipped: ({ skipped }) => (skipped === 0 ? undefined : skipped),
};

const REPLAY_LINES = ["rowid", "subscription", "action", "selection", "from", "to", "total"] as const;

/** What a replay would send. */
export const REPLAY_COUNT_RECORD = linesOf<ReplayCount>(REPLAY_COUNT, COUNT_SHOWN);

export const REPLAYS = {
  noun: "replay",
  plural: "replays",
  record: linesOf(REPLAY, SHOWN_REPLAY, REPLAY_LINES),
  list: listOf(REPLAY, SHOWN_REPLAY, {
    rowid: ID_COLUMN,
    subscription: { shrinkTo: 12, keepWhole: true },
    action: { shrinkTo: 10, dropOrder: 1 },
    selection: {},
    status: {},
    queued: { align: "right" },
    total: { value: ({ total }) => total, align: "right" },
    timestamped: { time: true },
  }),
  none: () =>
    `No replays yet. Begin one: ${nextCommand("subscriptions replay ID --from TIME --status missed")}`,
} satisfies RecordView<Replay>;

function replayColor({ status }: Replay): "green" | "yellow" | "red" | "dim" {
  if (status === "done") return "green";
  if (status === "failed") return "red";
  return status === "cancelled" ? "dim" : "yellow";
}
