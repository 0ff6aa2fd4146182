import { type AttentionItem, attentionText } from "../domain/words/attention.ts";
import {
  ATTENTION_LIMITS,
  type AttentionReason,
  type Finding,
  type FindingsMeta,
  fine,
  type Health,
  type Node,
  problem,
  warning,
} from "../domain/operations.ts";
import { type Token, tokenEndMs } from "../domain/token.ts";
import { toIso } from "../runtime/clock.ts";
import type { StatsBacklog } from "../domain/stats/stats.ts";
import type { AttentionPage } from "../store/queue.ts";
import type { ServiceContext } from "./context.ts";
import { byteCount } from "../domain/formats.ts";
import type { DatabaseFacts } from "../store/store.ts";

/** What a service runs on. */
export interface ServiceEnvironment {
  /** What was found of the machine and the data folder; nothing of it is read from the store. */
  readonly findings: readonly Finding[];
  /** How far the clock was set since the process began. */
  readonly clockShiftMs: number;
  /** Whether it is a server, whose engine must run, or a command that has the folder for a moment. */
  readonly serves: boolean;
  readonly encrypts: boolean;
  /** Whether requests need no token. */
  readonly isOpen: boolean;
}

export async function diagnose(
  { store, clock }: ServiceContext,
  inspect: () => ServiceEnvironment,
  health: Health,
): Promise<{ data: readonly Finding[]; meta: FindingsMeta }> {
  const nowMs = clock.now();
  const [allTokens, backlog, newest, attention] = await Promise.all([
    store.tokens.list(),
    store.queue.backlog(nowMs),
    store.events.list({ order: "desc", limit: 1, page: 1 }),
    store.queue.attention({ nowMs, limit: ATTENTION_LIMITS.listMax }),
  ]);
  const { database } = store;
  const ofDatabase =
    database === undefined
      ? []
      : databaseFindings(...(await Promise.all([database.inspect(), database.nodes()])), nowMs);
  const environment = inspect();
  const data = [
    ...(environment.serves ? [serverFinding(health)] : database === undefined ? [NO_SERVER] : []),
    ...environment.findings,
    ...ofDatabase,
    ...findingsOf({
      ...environment,
      tokens: allTokens,
      backlog,
      attention,
      damagedEvents: store.damagedEvents(),
      newestEvent: newest.events[0]?.timestamped,
      nowMs,
    }),
  ];
  return { data, meta: { time: toIso(nowMs) } };
}

const NO_SERVER = warning(
  "server",
  "No server runs on these data: nothing is delivered.",
  "Start one with `evreg serve`.",
);

function serverFinding({ status, reason, version, engine }: Health): Finding {
  if (status === "ok") return fine("server", `evreg ${version} stores and delivers.`);
  return problem(
    "server",
    `evreg ${version} does not do its work: ${reason ?? "it does not say why"}`,
    engine === "stopped"
      ? "Its log has the cause; fix that, and start it again."
      : "Its log has the cause. Fix that; the server tries again by itself, every second or so, and needs no restart.",
  );
}

/** What is checked, apart from the machine. */
export interface DoctorInput extends Omit<ServiceEnvironment, "findings"> {
  readonly tokens: readonly Token[];
  readonly backlog: StatsBacklog;
  readonly attention: AttentionPage;
  /** The damaged events that were found since the start; only a backup reads all. */
  readonly damagedEvents: readonly number[];
  /** When it was published; `undefined` when there is none. */
  readonly newestEvent: string | undefined;
  readonly nowMs: number;
}

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const SOON_MS = 14 * DAY_MS;
const LATE_MS = 5 * 60_000;
const CLOCK_TOLERANCE_MS = 5_000;
const MAX_NAMED = 3;

export function findingsOf(input: DoctorInput): readonly Finding[] {
  const findings = [
    clockFinding(input),
    encryptionFinding(input),
    tokenFinding(input),
    handlerFinding(input),
    backlogFinding(input),
    damagedEventFinding(input.damagedEvents),
  ];
  return findings.filter((finding) => finding !== undefined);
}

function clockFinding({ clockShiftMs, newestEvent, nowMs }: DoctorInput): Finding {
  const remedy = "Let a time service set the clock: signatures and retries of deliveries depend on it.";
  if (newestEvent !== undefined && Date.parse(newestEvent) > nowMs + CLOCK_TOLERANCE_MS) {
    const sentence = `The clock says ${toIso(nowMs)}, and the newest event is of ${newestEvent}: one of them is wrong. What waited for a time was moved with the clock.`;
    return problem("clock", sentence, remedy);
  }
  if (Math.abs(clockShiftMs) > CLOCK_TOLERANCE_MS) {
    const by = `${Math.round(Math.abs(clockShiftMs) / 1_000)} s ${clockShiftMs > 0 ? "ahead" : "back"}`;
    const moved = clockShiftMs > 0 ? "" : " What waits was moved with it.";
    return warning("clock", `The clock was set ${by} since the process began.${moved}`, remedy);
  }
  return fine("clock", `The clock says ${toIso(nowMs)} and runs evenly.`);
}

function encryptionFinding({ encrypts }: DoctorInput): Finding {
  if (encrypts) return fine("encryption", "Secrets of subscriptions are encrypted where they are stored.");
  return warning(
    "encryption",
    "Secrets of subscriptions are stored, and in backups, as they are.",
    "Set EVREG_ENCRYPTION_KEY_FILE to a file with a key, as `openssl rand -base64 32` makes one, and start again.",
  );
}

/** Made for a day at most, as for one job: nobody waits for another. */
function isShortLived(token: Token): boolean {
  return tokenEndMs(token) - Date.parse(token.timestamped) <= DAY_MS;
}

function tokenFinding({ tokens: all, isOpen, serves, nowMs }: DoctorInput): Finding {
  const check = "tokens";
  const inMs = (token: Token): number => tokenEndMs(token) - nowMs;
  const valid = all.filter((token) => inMs(token) > 0);
  const soon = valid.filter((token) => inMs(token) <= SOON_MS && !isShortLived(token));
  if (soon.length > 0) {
    const list = named(soon.map(({ name, expires_at: at }) => `${name} (${at})`));
    return warning(
      check,
      `${count(soon.length, "token expires", "tokens expire")} within 14 days: ${list}.`,
      "Make another with `evreg tokens create`, hand it over, and revoke the old one.",
    );
  }
  if (isOpen) return fine(check, "None is needed: anybody who reaches the server may do everything.");
  if (all.length === 0 && !serves) {
    return fine(check, "There is none yet: a server that needs one makes the first one at its start.");
  }
  const managing = valid.filter(({ scopes }) => scopes.includes("admin"));
  if (managing.length === 0) {
    return warning(
      check,
      "No token has the scope admin, so nobody can manage tokens over HTTP.",
      "Make one on the data folder, with the server stopped: `evreg tokens create NAME --scope admin`.",
    );
  }
  const expired = all.length - valid.length;
  const old = expired === 0 ? "" : `; ${expired} that expired can be revoked`;
  return fine(
    check,
    `${count(valid.length, "token is", "tokens are")} valid, none ends within 14 days${old}.`,
  );
}

/** Summarises what of the subscriptions needs a person; what has lasted for long or was given up is a problem. */
function handlerFinding({ attention: { items, total }, nowMs }: DoctorInput): Finding {
  const check = "handlers";
  const [gravest] = items;
  if (gravest === undefined) return fine(check, "No subscription needs a person.");
  const more = total - MAX_NAMED;
  const rest = more > 0 ? [`${count(more, "more is", "more are")} in the list of \`evreg attention\`.`] : [];
  const sentences = [...items.slice(0, MAX_NAMED).map(attentionText), ...rest].join(" ");
  const remedy = REMEDIES[gravest.reason](gravest);
  const finding = items.some((item) => isProblem(item, nowMs)) ? problem : warning;
  return finding(check, sentences, remedy);
}

function isProblem({ reason, since }: AttentionItem, nowMs: number): boolean {
  if (reason === "deactivated") return true;
  if (reason !== "failing" && reason !== "blocked") return false;
  return since !== null && nowMs - Date.parse(since) > HOUR_MS;
}

const REMEDIES: Readonly<Record<AttentionReason, (item: AttentionItem) => string>> = {
  deactivated: ({ subscription_id: id }) =>
    `${fixText(id)} \`evreg subscriptions update ${id} --active\` makes it active again.`,
  blocked: ({ delivery_id: id }) =>
    `See why with \`evreg deliveries get ${id}\`. evreg keeps trying it: fix the handler, and send it now with \`evreg deliveries retry ${id}\`, or go past it with \`evreg deliveries skip ${id}\`.`,
  failing: ({ subscription_id: id, error }) => {
    const setting =
      error === "address_refused"
        ? " address_refused says that the host has an address which delivery.allowNetworks of the configuration would have to open, or that it is http: where delivery.allowHttp is not set."
        : "";
    return `${fixText(id)} What waits is then sent without further help, or at once with \`evreg subscriptions replay ${id} --status waiting\`.${setting}`;
  },
  failed: ({ subscription_id: id, published_from: from }) =>
    `Once its handler is mended, send them again with \`evreg subscriptions replay ${id} --from ${from} --status failed\`.`,
  unclaimed: ({ subscription_id: id }) =>
    `Start a consumer, or delete it with \`evreg subscriptions delete ${id}\`.`,
  slowed: ({ subscription_id: id }) =>
    `Its handler asked for the pause, or only refuses: see \`evreg subscriptions attempts ${id}\`.`,
  paused: ({ subscription_id: id, since, missed }) => {
    const again =
      since === null || (missed ?? 0) === 0
        ? ""
        : `; what was missed can be sent then with \`evreg subscriptions replay ${id} --from ${since} --status missed\``;
    return `Unless it is meant, go on with \`evreg subscriptions update ${id} --active\`${again}.`;
  },
};

function fixText(id: number): string {
  return `See why with \`evreg subscriptions attempts ${id}\`, and fix its consumer or its handler, or name another handler with \`evreg subscriptions update ${id} --handler URL\`.`;
}

function damagedEventFinding(events: readonly number[]): Finding | undefined {
  if (events.length === 0) return undefined;
  return problem(
    "events",
    `${count(events.length, "event is", "events are")} damaged where they are stored: ${named(events.map(String))}. Their payloads are not those that were published, and are neither shown nor sent.`,
    "Restore a backup from before the damage with `evreg restore`; `evreg backup` reads all events. Look at the disk and the memory of the machine, too.",
  );
}

function backlogFinding({ backlog: counts, nowMs }: DoctorInput): Finding {
  const { due, busy, paced, delivering, waiting, blocked, held } = counts;
  const sentence = `Deliveries: ${due.deliveries} due, ${busy.deliveries} behind others of their subscriptions, ${paced.deliveries} at a rate limit or for a consumer, ${delivering.deliveries} under way, ${waiting.deliveries} waiting for their time, ${blocked.deliveries} behind one that blocks, ${held.deliveries} held.`;
  if (due.since === null || nowMs - Date.parse(due.since) <= LATE_MS) return fine("backlog", sentence);
  return warning(
    "backlog",
    `${sentence} The first has been due since ${due.since}.`,
    "A server must run to deliver; where one does, its handlers are slower than what is published: raise delivery.maxInFlight, or make them faster.",
  );
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

function named(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return more > 0 ? `${names.slice(0, MAX_NAMED).join(", ")} and ${more} more` : names.join(", ");
}

/** What the doctor says of a database and of those who share it. */
export function databaseFindings(
  facts: DatabaseFacts,
  nodes: readonly Node[],
  nowMs: number,
): readonly Finding[] {
  return [
    fine("database", `PostgreSQL ${facts.version}, ${byteCount(facts.bytes)}.`),
    durabilityFinding(facts),
    nodesFinding(nodes, nowMs),
    settingsFinding(facts),
  ];
}

function durabilityFinding({ risks }: DatabaseFacts): Finding {
  if (risks.length === 0) return fine("durability", "What is acknowledged outlives a crash of the database.");
  const sentence = `${risks.join(", ")} off: when the database or its machine crashes, events that were acknowledged are lost.`;
  return problem("durability", sentence, "Set that on in the configuration of the database.");
}

function settingsFinding({ differing }: DatabaseFacts): Finding {
  if (differing.length === 0) return fine("settings", "All nodes that run have the same settings.");
  const sentence = `Nodes have different settings: ${differing.join(", ")}.`;
  const remedy =
    "Give all of them the same configuration, as `evreg config` shows it on each machine, and the same evreg.";
  return warning("settings", sentence, remedy);
}

function nodesFinding(nodes: readonly Node[], nowMs: number): Finding {
  const serving = nodes.filter(({ status }) => status === "serving").length;
  if (serving === 0) {
    return warning("nodes", "No node runs, so nothing is delivered.", "Start one with `evreg serve`.");
  }
  const sentence = `${serving} ${serving === 1 ? "node delivers" : "nodes deliver"}.`;
  const gone = nodes.filter(
    ({ status, seen_at }) => status === "gone" && nowMs - Date.parse(seen_at) < HOUR_MS,
  );
  if (gone.length === 0) return fine("nodes", sentence);
  const list = gone.map(({ host, pid, seen_at }) => `${host} (process ${pid}, ${seen_at})`).join(", ");
  const remedy = "See the log of its supervisor. What it had under way is sent by the others.";
  return warning("nodes", `${sentence} Ended without a word within the hour: ${list}.`, remedy);
}
