import { Flags } from "@oclif/core";
import { TargetCommand } from "../../cli/base-command.ts";
import { durationFlagMs, rowidArg } from "../../cli/flags.ts";
import { note } from "../../cli/io/output.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { SUBSCRIPTION_LIMITS } from "../../domain/subscription.ts";
import { NEW_SUBSCRIPTION_RECORD } from "../../resources/subscriptions.ts";

export default class SubscriptionsRotateSecret extends TargetCommand {
  static override usage = "subscriptions rotate-secret ID [--overlap TIME | --expire-now]";
  static override summary = "Give a subscription a new secret. It is printed once, here.";
  static override description =
    "The secret before stays valid for the overlap: until it ends, webhook-signature holds a signature by each of the two, and X-Evreg-Signature and Authorization go by the one before. Let the handler take both, then only the new one once the overlap is over.";
  static override examples = [
    "<%= config.bin %> subscriptions rotate-secret 3",
    {
      description: "The handler has the new one within the hour",
      command: "<%= config.bin %> subscriptions rotate-secret 3 --overlap 1h",
    },
    {
      description: "Somebody else knows the secret: end it at once",
      command: "<%= config.bin %> subscriptions rotate-secret 3 --expire-now",
    },
    {
      description: "Keep only the secret, in a file",
      command: "<%= config.bin %> subscriptions rotate-secret 3 --json | jq -r .data.secret > secret",
    },
  ];
  static override args = { id: rowidArg("subscription") };
  static override flags = {
    overlap: Flags.string({
      summary: "How long the secret before stays valid, such as 30m, 12h or 2d (default 24h, at most 30d).",
      helpValue: "TIME",
      exclusive: ["expire-now"],
    }),
    "expire-now": Flags.boolean({ summary: "The secret before is not valid any more." }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(SubscriptionsRotateSecret);
    const rotation = flags["expire-now"] ? { overlap_ms: 0 } : overlapOf(flags.overlap);
    const answer = await this.withTarget(flags, (evreg) =>
      evreg.subscriptions.rotateSecret(args.id, rotation),
    );
    const output = this.outputFor(flags);
    await output.record(answer, NEW_SUBSCRIPTION_RECORD);
    if (output.format === "table") {
      note("The secret is shown only now. The handler verifies each delivery's signature with it.");
    }
    return EXIT.done;
  }
}

function overlapOf(text: string | undefined): { overlap_ms?: number } {
  if (text === undefined) return {};
  const limits = { minMs: 0, maxMs: SUBSCRIPTION_LIMITS.overlapMaxMs, such: "30m, 12h or 2d" };
  return { overlap_ms: durationFlagMs("overlap", text, limits) };
}
