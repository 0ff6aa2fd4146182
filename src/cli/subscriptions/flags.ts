import { Flags, type Interfaces } from "@oclif/core";
import type { Schemata } from "../../domain/action.ts";
import { checkBearerToken } from "../../domain/subscription.ts";
import type { SubscriptionSettings } from "../../domain/subscription-settings.ts";
import { SUBSCRIPTION } from "../../model/subscription.ts";
import { choiceFlag, definedOnly, flagValue, textFlag } from "../flags.ts";
import { readCredential } from "../io/prompts.ts";
import { parseText } from "../../json/parse.ts";
import { schemataOf, whereSchema } from "../schema-file.ts";
import { usageError } from "../usage-errors.ts";
import type { Field } from "../../model/field.ts";

const DELIVERY = { helpGroup: "DELIVERY" };

/** What takes a setting away again. */
const NONE = "none";

/** The members of a subscription that one flag stands for, and its name: `rate-limit`. */
const FLAGGED = Object.entries<Field>(SUBSCRIPTION).flatMap(
  ([member, { flag: summary, flagName, kind, change: schema, none }]) => {
    if (summary === undefined || kind === undefined || schema === undefined) return [];
    const name = flagName ?? member.replace(/_ms$/, "").replaceAll("_", "-");
    return [{ member, name, summary, kind, schema, isNullable: none === null }];
  },
);

/** The flags of settings for which one text does not stand. */
const madeFlags = {
  filter: Flags.string({
    summary:
      "Send only events with this value in their payload, such as country=FR or customer.id=7 (may be repeated: all must be so), or whose payload conforms to a JSON Schema: a file, - for stdin, or inline. Or none.",
    helpValue: "MEMBER=VALUE|FILE|JSON",
    ...DELIVERY,
    multiple: true,
    multipleNonGreedy: true,
  }),
  ordered: Flags.boolean({
    summary: "One delivery at a time, in the order in which the events were published.",
    ...DELIVERY,
    allowNo: true,
  }),
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

/** What a subscription may ask for beyond what all have, see `SubscriptionSettings`. */
export const settingsFlags: typeof madeFlags = { ...madeFlags, ...flagsOf() };

/** The members of a request that these flags stand for. */
export async function settingsOf(
  flags: Partial<Interfaces.InferredFlags<typeof madeFlags>>,
): Promise<Partial<SubscriptionSettings>> {
  return definedOnly({
    filter: await filterOf(flags.filter),
    ordered: flags["ordered-by"] === undefined ? flags.ordered : { key: pointerOf(flags["ordered-by"]) },
    on_exhausted: flags["on-exhausted"],
    ...inputOf(flags),
  });
}

async function filterOf(typed: readonly string[] | undefined): Promise<Schemata | null | undefined> {
  if (typed === undefined) return undefined;
  if (typed.length === 1 && typed[0] === NONE) return null;
  const flag = "--filter";
  return schemataOf(flag, parseText(await whereSchema(flag, typed)));
}

function pointerOf(text: string): string {
  if (text.startsWith("/")) return text;
  throw usageError(`--ordered-by takes a JSON Pointer such as /customer/id, not ${JSON.stringify(text)}.`);
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
  ),
};

/** The members of a request that these flags stand for. */
export async function bearerOf(flags: {
  readonly bearer?: "secret" | "none" | undefined;
  readonly "bearer-token-file"?: string | undefined;
}): Promise<{ bearer?: "secret" | "none"; bearer_token?: string }> {
  const path = flags["bearer-token-file"];
  if (path === undefined) return flags.bearer === undefined ? {} : { bearer: flags.bearer };
  return {
    bearer_token: checkBearerToken("--bearer-token-file", await readCredential("bearer-token-file", path)),
  };
}

function flagsOf(): Readonly<Interfaces.FlagInput> {
  const flags = FLAGGED.map(({ member, name, summary, kind }) => {
    const text = { summary, helpValue: kind.helpValue, ...DELIVERY, member };
    const lines = { ...text, multiple: true, multipleNonGreedy: true } as const;
    return [name, kind.hasLines ? Flags.string(lines) : Flags.string(text)] as const;
  });
  return Object.fromEntries(flags);
}

/** The members of a body that these flags stand for. @throws `usage` for a text that its kind does not read */
function inputOf(flags: object): object {
  const typed = flags as Readonly<Record<string, string | readonly string[] | undefined>>;
  return Object.fromEntries(
    FLAGGED.flatMap(({ member, name, kind, schema, isNullable }) => {
      const words = typed[name];
      if (words === undefined) return [];
      const text = typeof words === "string" ? words : words.join("\n");
      return [[member, isNullable && text === NONE ? null : flagValue(name, text, kind, schema)]];
    }),
  );
}
