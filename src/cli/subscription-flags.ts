import { Flags, type Interfaces } from "@oclif/core";
import type { Schemata } from "../domain/action.ts";
import { SETTINGS_LIMITS, type SubscriptionSettings } from "../domain/subscription-settings.ts";
import { choiceFlag, definedOnly, durationFlagMs, textFlag } from "./flags.ts";
import { readInput } from "./io/input.ts";
import { schemataOf } from "./schema-file.ts";
import { usageError } from "./usage-errors.ts";
import { whereSchema } from "./where.ts";

/** What takes a setting away again. */
const NONE = "none";

const DELIVERY = { helpGroup: "DELIVERY" };

/** What a subscription may ask for beyond what all have, see `SubscriptionSettings`. */
export const settingsFlags = {
  filter: Flags.string({
    summary:
      "Send only events with this value in their payload, such as country=FR or customer.id=7 (may be repeated: all must be so), or whose payload conforms to a JSON Schema: a file, - for stdin, or inline. Or none.",
    helpValue: "MEMBER=VALUE|FILE|JSON",
    ...DELIVERY,
    multiple: true,
    multipleNonGreedy: true,
  }),
  "rate-limit": textFlag("Most attempts begun in a second, or none.", "NUMBER", DELIVERY),
  "max-in-flight": textFlag("Most attempts under way at a time, or none.", "NUMBER", DELIVERY),
  timeout: textFlag(
    "How long one attempt may take, such as 500ms or 30s (100ms to 60s), or none.",
    "DURATION",
    DELIVERY,
  ),
  header: Flags.string({
    summary: "Send this header with each delivery; may be repeated, and replaces those there are. Or none.",
    helpValue: "'NAME: VALUE'",
    ...DELIVERY,
    multiple: true,
    multipleNonGreedy: true,
  }),
  "retry-schedule": textFlag(
    "The waits before each retry, such as 0s,30s,10m,2h, each at most 7d; the last goes for all that follow. Or none.",
    "DURATIONS",
    DELIVERY,
  ),
  ordered: Flags.boolean({
    summary: "One delivery at a time, in the order in which the events were published.",
    ...DELIVERY,
    allowNo: true,
  }),
  "expires-after": textFlag(
    "Delete one of mode pull once nobody has claimed from it for so long (1h to 90d), or none.",
    "DURATION",
    DELIVERY,
  ),
  "ordered-by": textFlag(
    "One delivery at a time of the events with the same value at this JSON Pointer of the payload, such as /customer/id.",
    "POINTER",
    { ...DELIVERY, exclusive: ["ordered"] },
  ),
  "on-exhausted": choiceFlag(
    "When an ordered one's delivery has used up its retries: block tries on (default), skip sends the next.",
    ["block", "skip"],
    DELIVERY,
  ),
};

/** The members of a request that these flags stand for. */
export async function settingsOf(
  flags: Partial<Interfaces.InferredFlags<typeof settingsFlags>>,
): Promise<Partial<SubscriptionSettings>> {
  const { header } = flags;
  return definedOnly({
    filter: await filterOf(flags.filter),
    rate_limit: orNone(flags["rate-limit"], (text) => numberOf("--rate-limit", text)),
    max_in_flight: orNone(flags["max-in-flight"], (text) => numberOf("--max-in-flight", text)),
    timeout_ms: orNone(flags.timeout, (text) => durationFlagMs("timeout", text, TIMEOUT)),
    headers: header && headersOf(header),
    retry_schedule: orNone(flags["retry-schedule"], waitsOf),
    ordered: flags["ordered-by"] === undefined ? flags.ordered : { key: pointerOf(flags["ordered-by"]) },
    on_exhausted: flags["on-exhausted"],
    expires_after_ms: orNone(flags["expires-after"], (text) => durationFlagMs("expires-after", text, EXPIRY)),
  });
}

async function filterOf(typed: readonly string[] | undefined): Promise<Schemata | null | undefined> {
  if (typed === undefined) return undefined;
  if (typed.length === 1 && typed[0] === NONE) return null;
  const flag = "--filter";
  return schemataOf(flag, Buffer.from(await whereSchema(flag, typed)), "filter");
}

function pointerOf(text: string): string {
  if (text.startsWith("/")) return text;
  throw usageError(`--ordered-by takes a JSON Pointer such as /customer/id, not ${JSON.stringify(text)}.`);
}

function orNone<T>(text: string | undefined, read: (text: string) => T): T | null | undefined {
  if (text === undefined) return undefined;
  return text === NONE ? null : read(text);
}

function numberOf(flag: string, text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw usageError(`${flag} takes a number or none, not ${JSON.stringify(text)}.`);
}

const TIMEOUT = {
  minMs: SETTINGS_LIMITS.timeoutMinMs,
  maxMs: SETTINGS_LIMITS.timeoutMaxMs,
  such: "500ms or 30s",
};
const EXPIRY = {
  minMs: SETTINGS_LIMITS.expiryMinMs,
  maxMs: SETTINGS_LIMITS.expiryMaxMs,
  such: "24h or 30d",
};
const WAIT = { minMs: 0, maxMs: SETTINGS_LIMITS.waitMaxMs, such: "0s, 30s, 10m or 2h" };

function waitsOf(text: string): readonly number[] {
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
  bearer: choiceFlag(
    "What Authorization: Bearer carries: the secret (default), or there is no such header.",
    ["secret", "none"],
    { exclusive: ["bearer-token-file"] },
  ),
  "bearer-token-file": textFlag(
    "A file (- for stdin) that holds the value Authorization: Bearer carries instead of the secret.",
    "FILE",
    { member: "bearer_token" },
  ),
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
