import { field, type Fields, ofSubscription } from "./field.ts";

/** Why a subscription needs a person, the gravest first; `ATTENTION` says what each means. */
export const ATTENTION_REASONS = [
  "deactivated",
  "blocked",
  "failing",
  "failed",
  "unclaimed",
  "slowed",
  "paused",
] as const;

/** The answer of `/health`. */
export const HEALTH = {
  status: { answer: { enum: ["ok", "unavailable"] } },
  version: { answer: field.text },
  reason: { answer: field.text, about: "Why it is unavailable.", isOptional: true },
  store: { answer: { enum: ["ok", "unavailable"] } },
  engine: { answer: { enum: ["running", "failing", "stopped"] } },
  instance: { answer: field.text, about: "New at each start." },
} as const satisfies Fields;

/** The result of one check of the doctor. */
export const FINDING = {
  check: { answer: field.text, about: "What was checked." },
  status: {
    answer: { enum: ["ok", "warning", "problem"] },
    about: "A `warning` becomes a problem later, or may be intended.",
  },
  found: { answer: field.text },
  remedy: { answer: field.nullableText, about: "What to do about it; `null` if all is well." },
} as const satisfies Fields;

/** A process that has the data open. */
export const NODE = {
  id: { answer: field.text, about: "New at each start." },
  host: { answer: field.text },
  pid: { answer: field.count },
  version: { answer: field.text },
  status: {
    answer: { enum: ["serving", "visiting", "gone"] },
    about: "`visiting` is a command, which delivers nothing; what is `gone` ended without a word.",
  },
  started_at: { answer: field.timestamp },
  seen_at: { answer: field.timestamp, about: "Its last sign of life." },
  shards: { answer: field.count, about: "How many of the shards it has." },
  leaving: { answer: field.count, about: "How many of these it gives up once nothing of them is under way." },
} as const satisfies Fields;

/** Something that needs a person. A subscription has one for its state at most, and one more for what failed. */
export const ATTENTION = {
  reason: {
    answer: { enum: ATTENTION_REASONS },
    about:
      "The gravest first. `deactivated`: evreg gave up on its handler. `blocked`: a delivery that used up its retries holds up those behind it. `failing`: the last attempt failed. `failed`: deliveries failed for good within a day. `unclaimed`: deliveries of a pull subscription have been due for five minutes, and nobody claims from it. `slowed`: no attempt begins for now. `paused`: a person paused it, and it holds deliveries or has missed events.",
  },
  ...ofSubscription,
  since: {
    answer: field.nullableTimestamp,
    about:
      "Of `blocked` and `failing` the first failure since the last success. Of `failed` the first within a day. Of `unclaimed` the later of the last claim and of when the oldest delivery became due. `null` if it is not known.",
  },
  until: { answer: field.nullableTimestamp, about: "No attempt begins before this; `null` if one may." },
  published_from: {
    answer: field.nullableTimestamp,
    about:
      "Of `failed`: when the oldest event was published whose delivery failed, so that a replay from there sends all of them. Of all that ever failed, where `at_least` says that not all were counted. `null` otherwise.",
  },
  deliveries: {
    answer: field.nullableCount,
    about: "Deliveries that are held, wait (behind the one that blocks), or have failed.",
  },
  at_least: {
    answer: { type: "boolean" },
    about: "Whether only so many deliveries were counted, and there may be more.",
  },
  delivery_id: {
    answer: { type: ["integer", "null"], minimum: 1 },
    about: "The delivery that blocks it, or that failed last.",
  },
  missed: {
    answer: field.nullableCount,
    about:
      "Events published since it was paused or deactivated, for which it has no delivery; `null` if that is not known.",
  },
  error: {
    answer: field.nullableText,
    about: "The last error such as `HTTP 500`, or why it was deactivated.",
  },
  found: { answer: field.text, about: "A sentence with all this." },
} as const satisfies Fields;
