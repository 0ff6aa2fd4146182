import { examples, TargetCommand } from "../cli/base-command.ts";
import { definedOnly, numberFlag, rangeFlags } from "../cli/flags.ts";
import { note } from "../cli/io/output.ts";
import { escapeControl } from "../cli/io/text.ts";
import { pageLine } from "../cli/resource-command.ts";
import { AUDIT_LIMITS } from "../domain/audit.ts";
import { AUDIT_LIST } from "../cli/views/audit.ts";

const NAMES = { noun: "change", plural: "changes", command: "audit" };

export class Audit extends TargetCommand {
  static override summary = "Show who changed what, newest first.";
  static override description =
    "Changes of actions, subscriptions and tokens, replays that were begun or cancelled, skipped deliveries, and restores: when, by which token and from which address. local is a command on the data folder itself, or a server that asks for no token. They are kept for retention.audit, 90 days unless set. It needs the scope admin.";
  static override examples = examples("evreg audit", {
    "Of the last two days": "evreg audit --from 2d",
    "What one token did": "evreg audit --output jsonl | jq 'select(.by == \"deploy\")'",
  });
  static override flags = {
    ...rangeFlags("Changes"),
    limit: numberFlag("Changes to list, 1 to 500 (default 50)."),
    after: numberFlag("Only those before this change.", { helpValue: "ID" }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Audit);
    const { from, to, limit, after } = flags;
    const output = this.outputFor(flags);
    const answer = await this.withTarget(flags, (evreg) =>
      evreg.audit.list(definedOnly({ from, to, limit, after })),
    );
    await output.list(answer, AUDIT_LIST, "No change was kept, or none in that time.");
    const last = answer.data.at(-1);
    if (output.format !== "table" || last === undefined) return;
    const isFull = answer.data.length >= (limit ?? AUDIT_LIMITS.listDefault);
    if (!isFull) return;
    note(escapeControl(pageLine(NAMES, flags, { shown: answer.data.length, next: last.rowid })));
  }
}
