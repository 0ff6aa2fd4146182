import { fine, type Finding, type FindingsMeta, problem } from "../domain/finding.ts";
import type { Health } from "../domain/health.ts";
import type { Subscription } from "../domain/subscription.ts";
import { toIso } from "../runtime/clock.ts";
import { given } from "./answers.ts";
import type { ServiceContext } from "./context.ts";
import { findingsOf } from "./doctor.ts";
import { pages } from "./pages.ts";
import { READ_SUBSCRIPTIONS } from "./subscriptions.ts";

/** What a service runs on. */
export interface DoctorSources {
  /** Of the machine and the data folder; asks nothing of the store. */
  findings(): readonly Finding[];
  /** How far the clock was set since the process began. */
  clockShiftMs(): number;
  /** Whether it is a server, whose engine must run, or a command that has the folder for a moment. */
  readonly serves: boolean;
  readonly encrypts: boolean;
  /** Whether the first token is in a file of the data folder. */
  hasTokenFile(): boolean;
  readonly isOpen: boolean;
}

export async function diagnose(
  { store, clock, tokens, delivery }: ServiceContext,
  surroundings: DoctorSources,
  health: Health,
): Promise<{ data: readonly Finding[]; meta: FindingsMeta }> {
  await tokens.flush();
  const nowMs = clock.now();
  const [allTokens, subscriptions, backlog, newest] = await Promise.all([
    store.listTokens(),
    pages(READ_SUBSCRIPTIONS, (last: Subscription | undefined) =>
      store.listSubscriptions({ ...given({ after: last?.rowid }), limit: READ_SUBSCRIPTIONS }),
    ),
    store.countBacklog(nowMs),
    store.listEvents({ order: "desc", limit: 1, page: 1 }),
  ]);
  const { encrypts, isOpen } = surroundings;
  const data = [
    ...(surroundings.serves ? [server(health)] : []),
    ...surroundings.findings(),
    ...findingsOf({
      tokens: allTokens,
      subscriptions,
      allowHttp: delivery.allowHttp,
      allowNetworks: delivery.allowNetworks,
      backlog,
      damagedEvents: store.damagedEvents(),
      unreadableSubscriptions: store.unreadableSubscriptions(),
      newestEvent: newest.events[0]?.timestamped,
      clockShiftMs: surroundings.clockShiftMs(),
      encrypts,
      hasTokenFile: surroundings.hasTokenFile(),
      isOpen,
      nowMs,
    }),
  ];
  return { data, meta: { time: toIso(nowMs) } };
}

function server({ status, reason, version }: Health): Finding {
  if (status === "ok") return fine("server", `evreg ${version} stores and delivers.`);
  return problem(
    "server",
    `evreg ${version} does not do its work: ${reason ?? "it does not say why"}`,
    "Its log has the cause; mend that, and start it again.",
  );
}
