import { Flags } from "@oclif/core";
import { TargetCommand } from "../../cli/base-command.ts";
import { definedOnly, rowidArg, timeFlag } from "../../cli/flags.ts";
import { runReplay } from "../../cli/publish/wait.ts";
import { REPLAY_SELECTIONS } from "../../domain/replay.ts";

export default class SubscriptionsReplay extends TargetCommand {
  static override summary = "Send a subscription many events of the past.";
  static override description = `The server does it in the background, through restarts and crashes, and puts live deliveries first: it goes on as fast as the handler takes them, and waits while the subscription is paused. Only events of the subscription's present action are sent. One replay runs per subscription at a time.

--status failed sends what failed for good, with all its retries again; missed sends what has no delivery, as it was published while the subscription was paused, before it existed or while it had another action; all sends both, what the filter kept back, and what was delivered already once more. The filter in force is asked for each. The handler knows an event it had by its webhook-id.`;
  static override usage =
    "subscriptions replay ID --from TIME --status failed|missed|all [--to TIME] [--dry-run | --wait]";
  static override examples = [
    {
      description: "How many deliveries failed since the first of the month",
      command: "<%= config.bin %> subscriptions replay 3 --from 2026-11-01 --status failed --dry-run",
    },
    {
      description: "Send them again, and wait until the last one is on its way",
      command: "<%= config.bin %> subscriptions replay 3 --from 2026-11-01 --status failed --wait",
    },
    {
      description: "What was published during a pause",
      command:
        "<%= config.bin %> subscriptions replay 3 --from 2026-11-20T22:00:00Z --to 2026-11-21T06:00:00Z --status missed",
    },
  ];
  static override args = { id: rowidArg("subscription") };
  static override flags = {
    from: timeFlag({
      summary: "Events published from this time on, inclusive: ISO 8601, or a date for its 00:00 UTC.",
      required: true,
    }),
    to: timeFlag({
      summary:
        "Events published before this time, exclusive: ISO 8601, or a date for its 00:00 UTC; now unless given.",
    }),
    status: Flags.option({
      summary: `Which of them: ${REPLAY_SELECTIONS.join(", ")}.`,
      options: REPLAY_SELECTIONS,
      helpValue: REPLAY_SELECTIONS.join("|"),
      required: true,
    })(),
    "dry-run": Flags.boolean({ summary: "Only count them.", exclusive: ["wait"] }),
    wait: Flags.boolean({
      summary:
        "Follow it to its end, which needs a running server; Ctrl-C leaves it running. Exit code 1 when it ends before it is done.",
    }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(SubscriptionsReplay);
    const { from, to, status, wait } = flags;
    const input = { from, status, ...definedOnly({ to }) };
    const options = { subscription: args.id, input, dryRun: flags["dry-run"], wait };
    const output = this.outputFor(flags);
    const serverFor = wait ? "--wait" : undefined;
    return this.withTarget(flags, (evreg) => runReplay(evreg, { ...options, output }), { serverFor });
  }
}
