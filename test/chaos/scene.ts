import type { ChaosReceiver } from "./receiver.ts";
import type { Fleet } from "./fleet.ts";

// What there is to deliver to: subscriptions of each kind, and how their handlers answer.

type Kind =
  /** Much at once; a tenth fails at first. */
  | "bulk"
  /** Ordered as a whole. */
  | "ordered"
  /** Ordered by key. */
  | "keyed"
  /** A little all the time, to see when it goes on. */
  | "steady"
  | "limited"
  | "paused"
  /** Gets a new handler all the time. */
  | "moved"
  | "replayed";

export interface Sub {
  readonly name: string;
  readonly kind: Kind;
  readonly action: string;
  readonly rowid: number;
  readonly rateLimit?: number;
}

interface Plan {
  readonly kind: Kind;
  readonly action: string;
  readonly count: number;
  readonly settings?: Readonly<Record<string, unknown>>;
  /** For every so many of events, the first attempt fails; of a tenth of those, the second as well. */
  readonly failsEach: number;
  readonly delayMs?: number;
}

export const KEYS = 100;
/** A part of the events, and events a second whatever the rate. */
export const ACTIONS = {
  "bulk.one": { part: 0.1875 },
  "bulk.two": { part: 0.1875 },
  "bulk.three": { part: 0.1875 },
  "bulk.four": { part: 0.1875 },
  "keyed.sent": { part: 0.25 },
  "steady.sent": { perSecond: 5 },
  "ordered.sent": { perSecond: 2 },
  "replayed.sent": { perSecond: 4 },
} as const;
export type Action = keyof typeof ACTIONS;

const PLANS: readonly Plan[] = [
  // A handler of which every thirtieth attempt has no answer gets a few hundred events a second.
  ...(["bulk.one", "bulk.two", "bulk.three", "bulk.four"] as const).map(
    (action) => ({ kind: "bulk", action, count: 1, failsEach: 10, delayMs: 20 }) as const,
  ),
  { kind: "keyed", action: "keyed.sent", count: 1, settings: { ordered: { key: "/key" } }, failsEach: 20 },
  { kind: "ordered", action: "ordered.sent", count: 4, settings: { ordered: true }, failsEach: 20 },
  { kind: "steady", action: "steady.sent", count: 12, failsEach: 0 },
  {
    kind: "limited",
    action: "steady.sent",
    count: 2,
    settings: { rate_limit: 20 },
    failsEach: 0,
    delayMs: 20,
  },
  { kind: "paused", action: "steady.sent", count: 3, failsEach: 10 },
  { kind: "moved", action: "steady.sent", count: 3, failsEach: 10 },
  { kind: "replayed", action: "replayed.sent", count: 2, failsEach: 0 },
];

/** Makes actions and subscriptions, and has the receiver answer as planned. */
export async function setScene(fleet: Fleet, receiver: ChaosReceiver): Promise<readonly Sub[]> {
  const create = async (path: string, body: object): Promise<number> => {
    const answer = await fleet.ask(fleet.members[0]!, "POST", path, body);
    if (answer.status !== 201) throw new Error(`${path} was answered with ${JSON.stringify(answer)}`);
    return (answer.body as { data: { rowid: number } }).data.rowid;
  };
  for (const action of Object.keys(ACTIONS)) {
    await create("/v1/actions", { action, application: "chaos", schemata: { type: "object" } });
  }
  const subs: Sub[] = [];
  for (const { kind, action, count, settings = {}, failsEach, delayMs = 0 } of PLANS) {
    for (let made = 0; made < count; made += 1) {
      const name = `${kind}-${subs.filter((sub) => sub.kind === kind).length + 1}`;
      receiver.answers(name, { status: failing(failsEach), delayMs });
      const rowid = await create("/v1/subscriptions", {
        application: "chaos",
        subscription: name,
        action,
        handler: receiver.handler(name, 0),
        max_retries: 20,
        ...settings,
      });
      const { rate_limit: rateLimit } = settings as { rate_limit?: number };
      subs.push({ name, kind, action, rowid, ...(rateLimit === undefined ? {} : { rateLimit }) });
    }
  }
  return subs;
}

function failing(each: number): (event: number, attempt: number) => number {
  if (each === 0) return () => 200;
  return (event, attempt) => {
    if (attempt > 2 || event % each !== 0) return 200;
    if (attempt === 2) return event % (each * 10) === 0 ? 500 : 200;
    return event % (each * 3) === 0 ? 0 : 500;
  };
}
