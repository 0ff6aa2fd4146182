import { styleText } from "node:util";
import { examples, TargetCommand } from "../cli/base-command.ts";
import { choiceFlag, definedOnly, numberFlag, rangeFlags, textFlag } from "../cli/flags.ts";
import { escapeControl, pad, textWidth, wrap } from "../cli/io/text.ts";
import { subscriptionFlag, subscriptionId } from "../cli/subscriptions/name.ts";
import { withTarget } from "../cli/target/next-command.ts";
import type { Target } from "../cli/target/target.ts";
import { EXIT } from "../cli/usage-errors.ts";
import { type Column, ID_COLUMN } from "../cli/io/table.ts";
import { EvregError, type EvregErrorCode } from "../domain/error.ts";
import { type Finding, fine, type Node, problem, warning } from "../domain/operations.ts";
import {
  type ActionFigures,
  STATS_BREAKDOWNS,
  STATS_RANGE_NAMES,
  type SubscriptionFigures,
} from "../domain/stats/stats.ts";
import type { Answer } from "../evreg.ts";
import { ACTION_FIGURES, STATS_RECORD, SUBSCRIPTION_FIGURES } from "../cli/views/stats.ts";
import { ATTENTION_LIST } from "../cli/views/subscriptions.ts";
import { identityColumns } from "../cli/views/tokens.ts";
import { listCommand, pageFlags } from "../cli/resource-command.ts";
import { AUDIT_LIMITS, type AuditEntry, type ChangedMember } from "../domain/audit.ts";
import type { ListView } from "../cli/views/view.ts";

export class Doctor extends TargetCommand {
  static override summary = "Check everything, and say what is wrong and what to do about it.";
  static override description =
    "Asks the server, which tells of its folder, disk, clock, tokens, handlers and what waits; without one it looks at the data folder itself. Each line is ok, a warning or a problem. A problem is what stops evreg from doing its work or has lost it already: damage, a full disk, a server that does not answer, a data folder that is not there, a handler that has failed for an hour or was deactivated. A warning may be meant, such as a server that is stopped. The exit code is 1 when there is a problem, and 0 with warnings only. Needs a token with the scope admin.";
  static override examples = examples("evreg doctor", {
    "In a script": "evreg doctor --json | jq '.data[] | select(.remedy)'",
    "Whether all of the data can be read": "evreg backup",
  });
  async run(): Promise<number> {
    const { flags } = await this.parse(Doctor);
    const data = await this.withTarget(flags, (_, target) => diagnose(target, this.config.version)).catch(
      (error: unknown) => [refusalOf(error)],
    );
    const count = (status: Finding["status"]): number => data.filter((one) => one.status === status).length;
    const meta = { warnings: count("warning"), problems: count("problem") };
    await this.outputFor(flags).text({ data, meta }, (width) => findingLines(data, width));
    return meta.problems > 0 ? EXIT.failed : EXIT.done;
  }
}

/** What a server says of itself, and how it looks from here; where none runs, what the data say. */
export async function diagnose(
  { evreg, kind, location }: Target,
  version: string,
): Promise<readonly Finding[]> {
  const { data } = await evreg.doctor();
  if (kind === "local") return data;
  const { data: health } = await evreg.health();
  return [fine("reach", `The server at ${location} answers.`), versions(health.version, version), ...data];
}

function versions(server: string, here: string): Finding {
  if (server === here) return fine("versions", `The server and this command are evreg ${here}.`);
  return warning(
    "versions",
    `The server is evreg ${server}, and this command is evreg ${here}.`,
    "Use the same version on both: what one knows the other may not.",
  );
}

/** Why nothing could be asked. A mistake on the command line or in the configuration is thrown: it is of no data. */
function refusalOf(error: unknown): Finding {
  if (!(error instanceof EvregError)) throw error;
  const { file, folder } = error.details;
  if (error.code === "usage" && file === undefined && folder === undefined) throw error;
  const { [error.code]: remedy = "Do what it says, and ask again." } = REMEDIES;
  return problem("reach", error.message, remedy);
}

const REMEDIES: Partial<Record<EvregErrorCode, string>> = {
  unauthorized: "Name a token with --token-file, or set EVREG_TOKEN.",
  forbidden: "Use a token with the scope admin for all applications.",
  unreachable: "Start the server, or name the right one with --url.",
  conflict: "End that process, or ask again when it has ended.",
};

export class AttentionList extends TargetCommand {
  static override summary = "Show what of the subscriptions needs a person, the gravest first.";
  static override description =
    "Those that evreg deactivated, that a delivery blocks, that fail or are slowed, pull subscriptions from which nobody claims, what failed for good in the last 24 hours, and pauses that hold deliveries or miss events. The exit code is 0 also if there is something. Needs a token with the scope read.";
  static override examples = examples("evreg attention", {
    "Of one application": "evreg attention --application billing",
    "How much there is, in a script": "evreg attention --json | jq .meta.total",
  });
  static override flags = {
    application: textFlag("Only of this application.", "NAME"),
    limit: numberFlag("Entries to list, 1 to 500 (default 100)."),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(AttentionList);
    const { application, limit } = flags;
    const query = definedOnly({ application, limit });
    const answer = await this.withTarget(flags, (evreg) => evreg.attention(query));
    const output = this.outputFor(flags);
    await output.list(answer, ATTENTION_LIST, "Nothing needs a person.");
    const { data, meta } = answer;
    if (meta.total > data.length)
      output.note(`${data.length} of ${meta.total} are shown; --limit shows more.`);
  }
}

export class Nodes extends TargetCommand {
  static override summary = "Show the servers on these data, and what share of the deliveries each has.";
  static override description =
    "On a data folder there is one. On a database each server and command that has it open is listed, and for a day what ended without a word. STATUS is serving for a server, which sends the deliveries of its share of the subscriptions, and says how many of its shards it gives up while what it has under way for them ends; visiting for a command such as this one, which delivers nothing and is gone once it has ended; and gone for what was killed, or lost the database. SEEN is the last sign of life. Needs a token with the scope admin.";
  static override examples = examples("evreg nodes", {
    "How many deliver, in a script":
      "evreg nodes --json | jq '[.data[] | select(.status == \"serving\")] | length'",
  });

  async run(): Promise<void> {
    const { flags } = await this.parse(Nodes);
    const answer = await this.withTarget(flags, (evreg) => evreg.nodes());
    await this.outputFor(flags).list(answer, NODE_COLUMNS, "Nothing has the data open.");
  }
}

const NODE_COLUMNS: readonly Column<Node>[] = [
  { title: "NODE", value: ({ id }) => id.slice(0, 8) },
  {
    title: "STATUS",
    value: ({ status, leaving }) => (leaving > 0 ? `${status}, gives up ${leaving}` : status),
  },
  { title: "SHARDS", value: ({ shards }) => shards },
  { title: "HOST", value: ({ host, pid }) => `${host} (${pid})`, shrinkTo: 12 },
  { title: "VERSION", value: ({ version }) => version },
  { title: "STARTED", value: ({ started_at }) => started_at, time: true },
  { title: "SEEN", value: ({ seen_at }) => seen_at, time: true },
];

const COLORS = { ok: "green", warning: "yellow", problem: "red" } as const;
const STATUS_WIDTH = "problem".length;
const GAP = "  ";
/** Fewest cells in which a sentence is still one. */
const MIN_TEXT_WIDTH = 24;

/** Says findings to a person: a line for each, and under it what to do. Sentences go on under themselves. */
export function findingLines(findings: readonly Finding[], width: number | undefined): string {
  const checkWidth = Math.max(0, ...findings.map(({ check }) => textWidth(check)));
  const indent = STATUS_WIDTH + GAP.length + checkWidth + GAP.length;
  const lineWidth = width === undefined ? undefined : Math.max(MIN_TEXT_WIDTH, width - indent);
  const lines = (text: string): readonly string[] => {
    const line = escapeControl(text);
    return lineWidth === undefined ? [line] : wrap(line, lineWidth);
  };
  return findings
    .flatMap(({ check, status, found, remedy }) => {
      const [first = "", ...rest] = lines(withTarget(found));
      const mark = styleText(COLORS[status], pad(status, STATUS_WIDTH, "left"), { stream: process.stdout });
      const next = remedy === null ? [] : lines(`> ${withTarget(remedy)}`);
      return [
        `${mark}${GAP}${pad(check, checkWidth, "left")}${GAP}${first}`,
        ...[...rest, ...next].map((line) => `${" ".repeat(indent)}${line}`),
      ];
    })
    .map((line) => `${line}\n`)
    .join("");
}

export class Whoami extends TargetCommand {
  static override summary = "Show where commands act, who you are there, and what you may do.";
  static override description =
    "Asks the server, so it also tells whether the address and the token are right; ends with 4 when the token is not. On a data folder without a server you may do everything. With --json it is what the API answers: who you are and what you may do; where that is, evreg config tells.";
  static override examples = examples("evreg whoami", {
    "Whether a token works, before it is given to somebody":
      "evreg whoami --url https://events.example.com --token-file ci.token",
    "In a script": "evreg whoami --json | jq -r '.data.scopes[]'",
  });

  async run(): Promise<number> {
    const { flags } = await this.parse(Whoami);
    return this.withTarget(flags, async (evreg, target) => {
      await this.outputFor(flags).record(await evreg.whoami(), identityColumns(target));
      return EXIT.done;
    });
  }
}

export class StatsCommand extends TargetCommand {
  static override summary = "Show what happened in the last minutes, hours or days.";
  static override description =
    "What was published, delivered and failed, how long that took, and what is unfinished now. The latency is from publishing to the handler's answer. With --by a line for each action or subscription, the busiest first. --json also has the value of each step of time. A server counts; without one, on a data folder itself, it shows what was stored.";
  static override examples = examples("evreg stats", {
    "Which handlers failed today": "evreg stats --range 24h --by subscription",
    "Published each hour of the last week": "evreg stats --range 7d --json | jq -c .data.series.published",
  });
  static override flags = {
    range: choiceFlag("The time up to now (default 1h).", STATS_RANGE_NAMES),
    by: choiceFlag("A line for each of these.", STATS_BREAKDOWNS),
    action: textFlag("Only of this action, or of a pattern such as order.*.", "ACTION"),
    subscription: subscriptionFlag,
    application: textFlag("Only of this application.", "APPLICATION"),
    limit: numberFlag("Lines with --by, 1 to 1,000 (default 100).", { dependsOn: ["by"] }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(StatsCommand);
    const { range, by, action, application, limit } = flags;
    const output = this.outputFor(flags);
    const answer = await this.withTarget(flags, async (evreg) => {
      const { subscription: typed } = flags;
      const subscription = typed === undefined ? undefined : await subscriptionId(evreg, typed);
      return evreg.stats(definedOnly({ range, by, action, subscription, application, limit }));
    });
    const { rows } = answer.data;
    if (rows === undefined || output.format !== "table") return output.record(answer, STATS_RECORD);
    const data = { data: rows };
    if (by === "action") {
      return output.list(
        data as Answer<readonly ActionFigures[]>,
        ACTION_FIGURES,
        "There is no such action.",
      );
    }
    const none = "There is no such subscription.";
    return output.list(data as Answer<readonly SubscriptionFigures[]>, SUBSCRIPTION_FIGURES, none);
  }
}

const LIST: readonly Column<AuditEntry>[] = [
  { ...ID_COLUMN, value: ({ rowid }) => rowid },
  { title: "AT", value: ({ timestamped }) => timestamped, time: true },
  { title: "BY", value: ({ by }) => by, shrinkTo: 8 },
  { title: "FROM", value: ({ address }) => address ?? undefined, dropOrder: 1 },
  { title: "CHANGE", value: ({ change }) => change },
  { title: "WHAT", value: whatOf, shrinkTo: 12, keepWhole: true },
  { title: "MEMBERS", value: ({ members }) => members.map(memberText).join(", "), shrinkTo: 10 },
];

const CHANGES = {
  noun: "change",
  plural: "changes",
  command: "audit",
  list: LIST,
  none: () => "No change was kept yet.",
} satisfies ListView<AuditEntry>;

function whatOf({ record_id: id, name }: AuditEntry): string {
  return id === null ? name : `${id} ${name}`;
}

function memberText({ member, before, after }: ChangedMember): string {
  if (before === null && after === null) return member;
  return before === null ? `${member}: ${after}` : `${member} ${before} → ${after ?? "none"}`;
}

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
