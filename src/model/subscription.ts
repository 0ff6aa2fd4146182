import { durationRange, durationText } from "../domain/formats.ts";
import { actionPattern, application, label } from "../domain/request.ts";
import { about, field, everywhere, type Fields, setting, withDefault } from "./field.ts";
import { COUNT, DURATION, DURATIONS, HEADER_LINES, NUMBER } from "./value-kinds.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const SUBSCRIPTION_LIMITS = {
  retriesMax: 20,
  handlerLength: 2_048,
  bearerTokenLength: 1_024,
  timeoutMaxMs: 60_000,
  headers: 20,
  headerNameLength: 128,
  headerValueLength: 1_024,
  /**
   * The bytes of all names and values: many servers take 16 KiB of headers, those of the service and of proxies included.
   */
  headersBytes: 8_192,
  waits: 20,
  waitMaxMs: 7 * DAY_MS,
  overlapDefaultMs: DAY_MS,
  overlapMaxMs: 30 * DAY_MS,
} as const;

const TIMEOUT_RANGE = { minimum: 100, maximum: SUBSCRIPTION_LIMITS.timeoutMaxMs } as const;
const EXPIRY_RANGE = { minimum: HOUR_MS, maximum: 90 * DAY_MS } as const;

/** A token of RFC 9110. */
const HEADER_NAME = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
/** Printable ASCII, without spaces around it: what every server and proxy reads alike. */
const HEADER_VALUE = "^(?:[!-~](?:[ -~]*[!-~])?)?$";

/** push: evreg sends its deliveries to its handler. pull: it has none, and consumers claim them. */
export const MODES = ["push", "pull"] as const;

const PATTERNS =
  "`order.*`: those of all actions beneath order, `*`: of all but evreg's own, in both cases also of actions that are made later. A pattern takes the right to read, or to write, for all applications.";

const RETRIES =
  "Retries after the first attempt. Unless the server's configuration or `retry_schedule` sets other waits, they come at once and after 2, 4, 8 and 16 seconds; from the sixth on the wait goes on doubling, up to 6 hours. A new one without it has one for each wait of `retry_schedule`, else as many as `GET /v1/whoami` says.";

const BEARER_TOKEN = {
  type: "string",
  minLength: 1,
  maxLength: SUBSCRIPTION_LIMITS.bearerTokenLength,
  pattern: "^[!-~]*$",
  writeOnly: true,
  description: "The value of its own for `bearer`, which need not be given beside it. It is never shown.",
} as const;

const PACE = "Order and pace";

/** Binds an application and a subscription name to an action, or several, and to the handler their events are sent to. */
export const SUBSCRIPTION = {
  rowid: { answer: field.rowid, title: "ID" },
  application: {
    new: about(application, "Name of the subscribing application."),
    isRequired: true,
    answer: field.text,
    title: "Application",
  },
  subscription: {
    new: { ...label, description: "Name of the subscription.", examples: ["welcome-mail"] },
    isRequired: true,
    answer: field.text,
    title: "Subscription",
  },
  action: {
    ...everywhere(about(actionPattern, `The action whose events are delivered; ${PATTERNS}`)),
    isRequired: true,
    title: "Action",
  },
  mode: withDefault("push", {
    type: "string",
    enum: MODES,
    description:
      "push: evreg sends its deliveries to its handler. pull: it has no handler, and consumers claim its deliveries. It never changes.",
  }),
  handler: {
    ...everywhere({
      type: ["string", "null"],
      format: "uri",
      maxLength: SUBSCRIPTION_LIMITS.handlerLength,
      description:
        "Absolute https: URL, without user info and not inside the operator's network. Required for `push`; `null` for `pull`.",
      examples: ["https://hooks.example.com/evreg"],
    }),
    only: { mode: "push", why: "consumers claim its deliveries" },
    title: "Handler",
  },
  max_retries: {
    ...everywhere({
      type: "integer",
      minimum: 0,
      maximum: SUBSCRIPTION_LIMITS.retriesMax,
      description: RETRIES,
    }),
    kind: COUNT,
    title: "Retries",
    flag: "Retries of a failed delivery, 0 to 20. Those of a new subscription: one for each wait of the schedule, else 5 unless the server says otherwise.",
  },
  active: {
    ...withDefault(true, about(field.flag, "False pauses the subscription.")),
    title: "State",
  },
  disabled_reason: {
    answer: field.nullableText,
    about: "Why evreg deactivated it; `null` while active, or if a person paused it.",
    title: "Reason",
  },
  bearer: {
    ...withDefault("secret", {
      type: "string",
      enum: ["secret", "own", "none"],
      description:
        "What `Authorization: Bearer` of its deliveries carries: its secret, a value of its own (`bearer_token`), or there is no such header.",
    }),
    title: "Bearer",
  },
  bearer_token: { new: BEARER_TOKEN, change: BEARER_TOKEN },
  previous_secret_until: {
    answer: field.nullableTimestamp,
    about: "During a rotation of the secret: until when the previous one signs as well.",
    title: "Old secret",
  },
  failing_since: {
    answer: field.nullableTimestamp,
    about: "The first failed attempt since the last success; `null` if the last attempt succeeded.",
    title: "Failing since",
  },
  slowed_until: {
    answer: field.nullableTimestamp,
    about:
      "No attempt starts before this: the handler sent `Retry-After`, or keeps answering 429, 502, 503 or 504. It may be in the past.",
    title: "Slowed until",
  },
  blocked_by: {
    answer: field.nullableRowid,
    about:
      "Rowid of the delivery that blocks an ordered subscription, or the first of several keys: it has used up its retries, and attempts go on. `null` if none does.",
    title: "Blocked by",
  },
  last_claim_at: {
    answer: field.nullableTimestamp,
    about: "To the minute: when a consumer last claimed from one of mode `pull`.",
    title: "Last claim",
  },
  filter: {
    ...setting({
      type: ["object", "null"],
      description:
        "A JSON Schema Draft 7 document, held to the limits of an action's schema. Events whose payload does not conform to it are not sent; their delivery ends as `filtered`. It goes for all deliveries that have not begun.",
      examples: [{ properties: { country: { const: "FR" } }, required: ["country"] }],
    }),
    title: "Filter",
  },
  rate_limit: {
    ...setting({
      type: ["number", "null"],
      minimum: 0.01,
      maximum: 10_000,
      description: "Most attempts begun in a second.",
      examples: [10],
    }),
    only: { mode: "push", why: "a consumer claims at the pace that it wants" },
    kind: NUMBER,
    title: "Rate limit",
    words: (rate) => `${rate} a second`,
    unset: "no limit",
    flag: "Most attempts begun in a second, or none.",
    group: PACE,
  },
  max_in_flight: {
    ...setting({
      type: ["integer", "null"],
      minimum: 1,
      maximum: 1_000,
      description: "Most attempts under way at a time; never more than the service allows to each.",
    }),
    only: { mode: "push", why: "a consumer claims as many as it wants" },
    kind: COUNT,
    title: "In flight",
    words: (count) => `at most ${count}`,
    unset: "what the server allows to each",
    flag: "Most attempts under way at a time, or none.",
    group: PACE,
  },
  timeout_ms: {
    ...setting({
      type: ["integer", "null"],
      ...TIMEOUT_RANGE,
      description: "How long one attempt may take, from looking the host up to the end of the answer.",
    }),
    only: { mode: "push", why: "a claim says how long its lease lasts" },
    kind: DURATION,
    title: "Timeout",
    unset: "what the server gives each",
    flag: `How long one attempt may take, such as 500ms or 30s (${durationRange(TIMEOUT_RANGE)}), or none.`,
    group: PACE,
    hint: `Of one attempt, ${durationRange(TIMEOUT_RANGE)}.`,
  },
  headers: {
    ...setting({
      type: ["object", "null"],
      maxProperties: SUBSCRIPTION_LIMITS.headers,
      propertyNames: {
        pattern: HEADER_NAME,
        minLength: 1,
        maxLength: SUBSCRIPTION_LIMITS.headerNameLength,
      },
      additionalProperties: {
        type: "string",
        pattern: HEADER_VALUE,
        maxLength: SUBSCRIPTION_LIMITS.headerValueLength,
      },
      description: `Sent with each delivery beside the service's own, which they cannot replace; at most ${SUBSCRIPTION_LIMITS.headersBytes} bytes of names and values together. They are shown: a credential belongs into \`bearer_token\`.`,
      examples: [{ "X-Team": "billing" }],
    }),
    kind: HEADER_LINES,
    title: "Headers",
    unset: "none of its own",
    flag: "Send this header with each delivery; may be repeated, and replaces those there are. Or none.",
    flagName: "header",
    group: "What is sent along",
    hint: "A line each. They are shown to all who may read this: credentials belong into the bearer.",
  },
  retry_schedule: {
    ...setting({
      type: ["array", "null"],
      minItems: 1,
      maxItems: SUBSCRIPTION_LIMITS.waits,
      items: { type: "integer", minimum: 0, maximum: SUBSCRIPTION_LIMITS.waitMaxMs },
      description:
        "The waits before retry 1, 2, … in milliseconds; the last one goes for all that follow. How many retries there are is for `max_retries` to say.",
      examples: [[0, 60_000, 3_600_000]],
    }),
    kind: DURATIONS,
    title: "Waits",
    flag: `The waits before each retry, such as 0s,30s,10m,2h, each at most ${durationText(SUBSCRIPTION_LIMITS.waitMaxMs)}; the last goes for all that follow. Or none.`,
  },
  ordered: {
    ...withDefault(false, {
      type: ["boolean", "object"],
      properties: {
        key: {
          type: "string",
          /** The pointer has at least one step, with `~` and `/` in a name as `~0` and `~1`. */
          pattern: "^(/([^~/]|~[01])*)+$",
          maxLength: 256,
          description: "A JSON Pointer into the payload.",
          examples: ["/customer/id"],
        },
      },
      required: ["key"],
      additionalProperties: false,
      description:
        "`true`: one delivery at a time, in the order in which the events were published. With a key: one at a time of all events with the same value (a string, a number, true, false or null) at that JSON Pointer, and others beside it; events without such a value count as one key.",
      examples: [{ key: "/customer/id" }],
    }),
    none: false,
    title: "Ordered",
  },
  on_exhausted: setting({
    enum: ["block", "skip", null],
    description:
      "Of an ordered one, what becomes of a delivery that has used up its retries. `block`: it is tried on, and those behind it (of its key, where there is one) wait. `skip`: it has failed, and the next one is sent.",
  }),
  expires_after_ms: {
    ...setting({
      type: ["integer", "null"],
      ...EXPIRY_RANGE,
      description:
        "Of one of mode `pull`: it is deleted once nobody has claimed from it for so long. The first hour of a server counts for nothing.",
      examples: [86_400_000],
    }),
    only: { mode: "pull", why: "its deliveries need no consumer" },
    kind: DURATION,
    title: "Expires",
    words: (span) => `${span} after the last claim`,
    unset: "never",
    flag: `Delete one of mode pull once nobody has claimed from it for so long (${durationRange(EXPIRY_RANGE)}), or none.`,
    group: PACE,
    hint: `It is deleted once nobody has claimed from it for so long, ${durationRange(EXPIRY_RANGE)}.`,
  },
  timestamped: { answer: field.timestamp, title: "Created" },
} as const satisfies Fields;
