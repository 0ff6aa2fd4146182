import { examples } from "../cli/base-command.ts";
import { rangeFlags } from "../cli/flags.ts";
import { listCommand, pageFlags } from "../cli/resource-command.ts";
import { CHANGES } from "../cli/views/audit.ts";
import { AUDIT_LIMITS } from "../domain/audit.ts";

export const Audit = listCommand(CHANGES, {
  summary: "Show who changed what, newest first.",
  description:
    "Changes of actions, subscriptions and tokens, replays that were begun or cancelled, skipped deliveries, and restores: when, by which token and from which address. local is a command on the data folder itself, or a server that asks for no token. They are kept for retention.audit, 90 days unless set. It needs the scope admin.",
  examples: examples("evreg audit", {
    "Of the last two days": "evreg audit --from 2d",
    "What one token did": "evreg audit --output jsonl | jq 'select(.by == \"deploy\")'",
  }),
  flags: { ...rangeFlags("Changes"), ...pageFlags(CHANGES) },
  pageSize: AUDIT_LIMITS.listDefault,
});
