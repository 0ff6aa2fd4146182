import { Flags, type Interfaces } from "@oclif/core";
import { SETTINGS_LIMITS, type SubscriptionSettings } from "../domain/subscription-settings.ts";
import { durationFlagMs } from "./flags.ts";
import { readInput } from "./io/input.ts";
import { readSchema } from "./schema-file.ts";
import { usageError } from "./usage-errors.ts";

/** What takes a setting away again. */
const NONE = "none";

/** What a subscription may ask for beyond what all have, see `SubscriptionSettings`. */
export const settingsFlags = {
  filter: Flags.string({
    summary:
      "Send only events whose payload conforms to the JSON Schema in this file (- for stdin), or none.",
    helpValue: "FILE",
    helpGroup: "DELIVERY",
  }),
  "rate-limit": Flags.string({
    summary: "Most attempts begun in a second, or none.",
    helpValue: "NUMBER",
    helpGroup: "DELIVERY",
  }),
  "max-in-flight": Flags.string({
    summary: "Most attempts under way at a time, or none.",
    helpValue: "NUMBER",
    helpGroup: "DELIVERY",
  }),
  timeout: Flags.string({
    summary: "How long one attempt may take, such as 500ms or 30s (100ms to 60s), or none.",
    helpValue: "DURATION",
    helpGroup: "DELIVERY",
  }),
  header: Flags.string({
    summary: "Send this header with each delivery; may be repeated, and replaces those there are. Or none.",
    helpValue: "'NAME: VALUE'",
    helpGroup: "DELIVERY",
    multiple: true,
    multipleNonGreedy: true,
  }),
  "retry-schedule": Flags.string({
    summary:
      "The waits before each retry, such as 0s,30s,10m,2h, each at most 7d; the last goes for all that follow. Or none.",
    helpValue: "DURATIONS",
    helpGroup: "DELIVERY",
  }),
  ordered: Flags.boolean({
    summary: "One delivery at a time, in the order in which the events were published.",
    helpGroup: "DELIVERY",
    allowNo: true,
  }),
  "on-exhausted": Flags.option({
    summary:
      "When an ordered one's delivery has used up its retries: block tries on (default), skip sends the next.",
    options: ["block", "skip"] as const,
    helpValue: "block|skip",
    helpGroup: "DELIVERY",
  })(),
};

type SettingsFlags = Partial<Interfaces.InferredFlags<typeof settingsFlags>>;

/** The members of a request that these flags stand for. */
export async function settingsOf(flags: SettingsFlags): Promise<Partial<SubscriptionSettings>> {
  const { filter, timeout, header, ordered } = flags;
  const settings: { -readonly [K in keyof SubscriptionSettings]?: SubscriptionSettings[K] } = {};
  if (filter !== undefined) settings.filter = filter === NONE ? null : await readSchema(filter);
  const rate = flags["rate-limit"];
  if (rate !== undefined) settings.rate_limit = numberOrNone("--rate-limit", rate);
  const inFlight = flags["max-in-flight"];
  if (inFlight !== undefined) settings.max_in_flight = numberOrNone("--max-in-flight", inFlight);
  if (timeout !== undefined)
    settings.timeout_ms = timeout === NONE ? null : durationFlagMs("timeout", timeout, TIMEOUT);
  if (header !== undefined) settings.headers = headersOf(header);
  const schedule = flags["retry-schedule"];
  if (schedule !== undefined) settings.retry_schedule = waitsOf(schedule);
  if (ordered !== undefined) settings.ordered = ordered;
  const exhausted = flags["on-exhausted"];
  if (exhausted !== undefined) settings.on_exhausted = exhausted;
  return settings;
}

function numberOrNone(flag: string, text: string): number | null {
  if (text === NONE) return null;
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw usageError(`${flag} takes a number or none, not ${JSON.stringify(text)}.`);
}

const TIMEOUT = {
  minMs: SETTINGS_LIMITS.timeoutMinMs,
  maxMs: SETTINGS_LIMITS.timeoutMaxMs,
  such: "500ms or 30s",
};
const WAIT = { minMs: 0, maxMs: SETTINGS_LIMITS.waitMaxMs, such: "0s, 30s, 10m or 2h" };

function waitsOf(text: string): readonly number[] | null {
  if (text === NONE) return null;
  const waits = text.split(",");
  if (waits.length > SETTINGS_LIMITS.waits) {
    throw usageError(
      `--retry-schedule: takes at most ${SETTINGS_LIMITS.waits} waits; these are ${waits.length}.`,
    );
  }
  return waits.map((wait) => durationFlagMs("retry-schedule", wait.trim(), WAIT));
}

function headersOf(lines: readonly string[]): Readonly<Record<string, string>> | null {
  if (lines.length === 1 && lines[0] === NONE) return null;
  if (lines.includes(NONE))
    throw usageError("--header none takes all headers away; give it alone, or leave it out.");
  const pairs = lines.map((line, index): [string, string] => {
    const colon = line.indexOf(":");
    // Not repeated: it may be a credential, and stderr may be a log.
    if (colon < 1) {
      const which = lines.length === 1 ? "this one" : `number ${index + 1} of these`;
      throw usageError(`--header takes 'NAME: VALUE' or none; ${which} has no name and colon.`);
    }
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
  const names = pairs.map(([name]) => name.toLowerCase());
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw usageError(`--header names ${twice} twice; give it once.`);
  return Object.fromEntries(pairs);
}

/** What the deliveries of a subscription carry as `Authorization: Bearer`. The value itself never stands on a command line. */
export const bearerFlags = {
  bearer: Flags.option({
    summary: "What Authorization: Bearer carries: the secret (default), or there is no such header.",
    options: ["secret", "none"] as const,
    helpValue: "secret|none",
    exclusive: ["bearer-token-file"],
  })(),
  "bearer-token-file": Flags.string({
    summary: "A file (- for stdin) that holds the value Authorization: Bearer carries instead of the secret.",
    helpValue: "FILE",
  }),
};

/** The members of a request that these flags stand for. */
export async function bearerOf(flags: {
  readonly bearer?: "secret" | "none" | undefined;
  readonly "bearer-token-file"?: string | undefined;
}): Promise<{ bearer?: "secret" | "none"; bearer_token?: string }> {
  const path = flags["bearer-token-file"];
  if (path === undefined) return flags.bearer === undefined ? {} : { bearer: flags.bearer };
  const token = Buffer.from(await readInput(path))
    .toString("utf8")
    .trim();
  if (token === "") throw usageError(`--bearer-token-file: ${path === "-" ? "the input" : path} is empty.`);
  return { bearer_token: token };
}
