import { Flags } from "@oclif/core";
import { examples, TargetCommand } from "../cli/base-command.ts";
import { choiceFlag, definedOnly, numberFlag, optionalArg, textFlag } from "../cli/flags.ts";
import { openBulk, publishBulk } from "../cli/publish/bulk.ts";
import { payloadFrom, publishOne } from "../cli/publish/publish-one.ts";
import { plainCommand } from "../cli/target/next-command.ts";
import { usageError } from "../cli/usage-errors.ts";
import type { Evreg } from "../evreg.ts";

/** What the keys of a bulk's lines begin with: as a key is, and with room for the number of a line behind it. */
const BULK_KEY = /^[\x20-\x7e]{1,200}$/;

export class Publish extends TargetCommand {
  static override summary = "Publish an event, or a whole file of them.";
  static override description = `The payload is typed, or read from a file or from stdin (-); evreg actions sample makes one up. The command is done when the event is stored for good.

--wait needs a running server, as only a server delivers. Without --timeout it waits as long as it takes: behind a delivery that blocks an ordered subscription that may be for ever. Its exit code is 1 when a delivery failed, when the time was over, and when the deliveries could not be read, for example with a token that may only publish; the event is published in each case. stderr says which, and with --json meta.outcome does: delivered, failed, held, timeout, interrupted, unknown, or none when there was nothing to deliver.

With --batch each line of the file is one event: {"action": "…", "payload": {…}, "idempotency_key": "…"}; the key is optional. Files may have any length. stderr gets each refused line with its number and the reason, and the exit code of that run is then 7; stdout gets the accepted events with --output jsonl, or the counts with --json: accepted are those published and those replayed, which were there already. While a server cannot take more, the command waits, for two minutes at most.

With --idempotency-key each line without its own key gets one that is made of this KEY and the line's number. So the same command can be given again after whatever has ended it, and when refused lines were corrected or lines added: no line is stored twice. A line that was changed since it was published is refused. Events are stored in the order of the lines.`;
  static override usage = [
    "publish ACTION PAYLOAD|FILE|- [--idempotency-key KEY] [--wait [--timeout SECONDS]]",
    "publish --batch FILE|- [--idempotency-key KEY] [--on-error continue|stop | --atomic]",
  ];
  static override examples = examples(`evreg publish order.created '{"id": 7, "total": 12.5}'`, {
    "From another program, which may repeat it without harm":
      "make-order | evreg publish order.created - --idempotency-key order-7",
    "One that is made up, to try a handler":
      "evreg actions sample order.created | evreg publish order.created - --wait",
    "And see it delivered: exit code 0 when every subscription got or filtered it, 1 when one did not or the time was over": `evreg publish order.created '{"id": 7}' --wait --timeout 60`,
    "A file of events, one a line": "evreg publish --batch events.ndjson",
    "A large file, by a command that can be given again whatever happens":
      "evreg publish --batch events.ndjson --idempotency-key orders-2026 --json 2> refused.ndjson",
    "All of a small file, or nothing": "evreg publish --batch events.ndjson --atomic",
  });
  static override args = {
    action: optionalArg("Name of the action."),
    payload: optionalArg("The payload: a JSON object, a file, or - for stdin."),
  };
  static override flags = {
    "idempotency-key": textFlag(
      "Publishing again with the same key and payload stores nothing new; with --batch, each line adds its number.",
      "KEY",
    ),
    wait: Flags.boolean({ summary: "Wait until every delivery has ended.", exclusive: ["batch"] }),
    timeout: numberFlag("Wait at most this long (default: as long as it takes).", {
      helpValue: "SECONDS",
      dependsOn: ["wait"],
    }),
    batch: Flags.string({ summary: "File with an event a line (NDJSON); - is stdin.", helpValue: "FILE" }),
    "on-error": choiceFlag(
      "At a refused line: go on with the next (the default), or end before the batch that has it.",
      ["continue", "stop"],
      { dependsOn: ["batch"], exclusive: ["atomic"] },
    ),
    atomic: Flags.boolean({
      summary: "All lines or none; at most 1,000 lines and 16 MiB.",
      dependsOn: ["batch"],
    }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Publish);
    const output = this.outputFor(flags);
    if (flags.batch !== undefined) {
      if (args.action !== undefined) {
        throw usageError("With --batch each line names its own action; leave the arguments out.");
      }
      const { batch: path, atomic, "on-error": onError = "continue", "idempotency-key": key } = flags;
      if (key !== undefined && !BULK_KEY.test(key)) {
        throw usageError("--idempotency-key: must be 1 to 200 printable ASCII characters with --batch.");
      }
      const bulk = { path, key, onError: atomic ? ("atomic" as const) : onError, output };
      const input = await openBulk(path);
      const act = (evreg: Evreg) => publishBulk(evreg, input, bulk);
      // There may be no target to publish to.
      return this.withTarget(flags, act, { creates: "data" }).finally(() => input.stream.destroy());
    }
    const { action } = args;
    const { wait, timeout: timeoutS, "idempotency-key": idempotency_key } = flags;
    if (action === undefined)
      throw usageError("Name the action to publish, or give a file of events with --batch.");
    if (args.payload === undefined) {
      throw usageError(
        `Give the payload: a JSON object in quotes, a file, or - for stdin. One is made up by ${plainCommand("actions sample")}.`,
      );
    }
    // Read before a folder is opened, which is not held while a person is still typing.
    const payload = await payloadFrom(args.payload);
    const event = { action, payload, ...definedOnly({ idempotency_key }) };
    const options = { wait, timeoutS, output };
    const act = (evreg: Evreg) => publishOne(evreg, event, options);
    return this.withTarget(flags, act, { creates: "data", serverFor: wait ? "--wait" : undefined });
  }
}
