import type { QuerySchema } from "../query.ts";
import { REPLAY_LIMITS, REPLAY_SELECTIONS, REPLAY_STATUSES } from "../replay.ts";
import { type BodySchema, querySchema, rowid } from "./members.ts";

export const NEW_REPLAY: BodySchema = {
  title: "NewReplay",
  type: "object",
  properties: {
    from: {
      type: "string",
      format: "date-time",
      description: "Events published then or later; ISO 8601 with its zone.",
      examples: ["2026-01-31T00:00:00Z"],
    },
    to: {
      type: "string",
      format: "date-time",
      description:
        "Events published before then. Left out: until now. Later ones are never part of a replay.",
      examples: ["2026-02-01T00:00:00Z"],
    },
    status: {
      type: "string",
      enum: REPLAY_SELECTIONS,
      description:
        "failed: those whose delivery failed for good. missed: those without a delivery, published while the subscription was paused, before it existed or while it had another action. all: both, those that the filter kept back, and those delivered already once more; the filter in force is asked for each.",
    },
    dry_run: {
      type: "boolean",
      default: false,
      description: "Only counts what would be sent, and begins nothing.",
    },
  },
  required: ["from", "status"],
  additionalProperties: false,
};

export const REPLAY_QUERY: QuerySchema = querySchema("ReplayQuery", {
  subscription: { ...rowid, description: "Only to the subscription with this rowid." },
  status: { type: "string", enum: REPLAY_STATUSES, description: "Only in this state." },
  limit: {
    type: "integer",
    minimum: 1,
    maximum: REPLAY_LIMITS.listMax,
    default: REPLAY_LIMITS.listDefault,
    description: "Replays in one answer.",
  },
  after: { ...rowid, description: "Walks on to replays older than this rowid." },
});
