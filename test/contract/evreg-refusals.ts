import { describe, expect, it } from "vitest";
import type { EvregErrorCode } from "../../src/domain/error.ts";
import type { Evreg } from "../../src/evreg.ts";
import { ANY_OBJECT, newAction, newEvent, newSubscription, refusal, useSharedEvreg } from "./harness.ts";
import type { EvregUnderTest, OpenEvreg } from "./harness.ts";

/** Asks for something with these members, one of which cannot be. */
type Call = (evreg: Evreg, members: never) => Promise<unknown>;

/** What is promised, the field that a refusal names, values that are refused there, and the calls that refuse them. */
type Row = readonly [promise: string, field: string, values: readonly unknown[], ...calls: Call[]];

/** A subscription to be made; those there are have the rowids below. */
const OTHER = newSubscription({ subscription: "other" });
const PUSH = 1;
const PULL = 2;
const FROM = "2026-01-01T00:00:00.000Z";
const LATER = "2026-01-02T00:00:00Z";
const BAD_TIMES = ["yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-02-29T00:00:00Z"];

const action: Call = ({ actions }, members: object) => actions.create({ ...newAction(), ...members });
const subscription: Call = (evreg, members: object) => evreg.subscriptions.create({ ...OTHER, ...members });
const change: Call = ({ subscriptions }, members: object) => subscriptions.update(PUSH, members);
const pulled: Call = ({ subscriptions }, members: object) => {
  const { handler: _, ...others } = OTHER;
  return subscriptions.create({ ...others, mode: "pull", ...members });
};
const pullChange: Call = ({ subscriptions }, members: object) => subscriptions.update(PULL, members);
const claim: Call = ({ subscriptions }, members: object) => subscriptions.claim(PULL, members);
const finish: Call = ({ subscriptions }, results: never) => subscriptions.finish(PULL, results);
const event: Call = ({ events }, members: object) => events.publish({ ...newEvent(), ...members });
const token: Call = ({ tokens }, members: object) =>
  tokens.create({ name: "n", scopes: ["read"], ...members });
const exchange: Call = ({ tokens }, code: never) => tokens.exchangeCode(code);
const replay: Call = ({ replays }, input: never) => replays.start(PUSH, input);
const count: Call = ({ replays }, input: never) => replays.count(PUSH, input);
const actions: Call = (evreg, query: never) => evreg.actions.list(query);
const events: Call = (evreg, query: never) => evreg.events.list(query);
const subscriptions: Call = (evreg, query: never) => evreg.subscriptions.list(query);
const deliveries: Call = (evreg, query: never) => evreg.deliveries.list(query);
const replays: Call = (evreg, query: never) => evreg.replays.list(query);
const stats: Call = (evreg, query: never) => evreg.stats(query);
const stream: Call = (evreg, query: never) => evreg.stream(query);

/** The same member with each of these values. */
function each(member: string, ...values: readonly unknown[]): readonly unknown[] {
  return values.map((value) => ({ [member]: value }));
}

/** Members that something needs, each left out. */
function needed(what: string, call: Call, ...members: readonly string[]): readonly Row[] {
  return members.map((member) => [`${what} needs ${member}`, member, each(member, undefined), call]);
}

const LONG = "x".repeat(129);
const NAMES = ["", ".", "a.", ".a", "a..b", "a b", "a/b", "ä", "a\n", LONG, 7, null, ["a"]];
const LABELS = ["", "   ", "a\u0000b", "a\nb", "\u200b", LONG, 7, null];
const HANDLERS = [
  "",
  "hooks.example.com",
  "/hooks",
  "http://hooks.example.com/",
  "ftp://hooks.example.com/",
  "https://user:pass@hooks.example.com/",
  "https://127.0.0.1/",
  "https://2130706433/",
  "https://[::1]/",
  "https://169.254.169.254/latest/meta-data",
  "https://10.0.0.1/",
  "https://localhost/",
  `https://hooks.example.com/${"x".repeat(2_048)}`,
  7,
  null,
];

const INVALID: readonly Row[] = [
  ["an action has a name of dotted segments", "action", each("action", ...NAMES), action],
  ["an application has a printable name", "application", each("application", ...LABELS), action],
  ...needed("an action", action, "action", "application", "schemata"),
  ["an action has no unknown members", "schema", each("schema", {}), action],
  ["a handler is an https URL outside", "handler", each("handler", ...HANDLERS), subscription, change],
  ["retries are 0 to 20", "max_retries", each("max_retries", -1, 21, 2.5, "5", null), subscription],
  ["active is true or false", "active", each("active", "true", null), subscription],
  ["a subscription has a printable name", "subscription", each("subscription", "", "a\nb"), subscription],
  ["so has its application", "application", each("application", " "), subscription],
  ["a subscription has an action's name or a pattern", "action", each("action", "a..b"), subscription],
  ["a secret is not chosen", "secret", each("secret", "whsec_mine"), subscription, change],
  ["a rowid is not chosen", "rowid", each("rowid", 1), subscription],
  ...needed("a subscription", subscription, "application", "subscription", "action", "handler"),
  [
    "a push subscription has a handler",
    "handler",
    [{ mode: "push" }, { mode: "push", handler: null }],
    pulled,
  ],
  ["a mode is push or pull", "mode", each("mode", "poll"), pulled],
  ["a pull subscription has no handler", "handler", each("handler", OTHER.handler), pulled, pullChange],
  ["a pull subscription has no rate", "rate_limit", each("rate_limit", 1), pulled, pullChange],
  ["a pull subscription has no attempts of evreg's", "max_in_flight", each("max_in_flight", 1), pulled],
  ["nor their time", "timeout_ms", each("timeout_ms", 1_000), pulled],
  ["it lasts an hour or longer", "expires_after_ms", each("expires_after_ms", 3_599_999), pulled],
  ["a claim is for 1 to 100", "max", each("max", 0, 101), claim],
  ["a claim waits for 20 s at most", "wait_ms", each("wait_ms", 20_001), claim],
  ["a lease is a second to an hour", "lease_ms", each("lease_ms", 999, 3_600_001), claim],
  ["a consumer has a printable name", "consumer", each("consumer", " "), claim],
  ["a claim has no unknown members", "count", each("count", 1), claim],
  ["results are given", "results", [{}, { results: [] }], finish],
  [
    "a lease is one of this subscription",
    "results[0].lease",
    ["nonsense", "1.1.1"].map((lease) => ({ results: [{ lease, outcome: "delivered" }] })),
    finish,
  ],
  [
    "an outcome is one that there is",
    "results[0].outcome",
    [{ results: [{ lease: "2.1.1", outcome: "done" }] }],
    finish,
  ],
  [
    "a status is one of HTTP",
    "results[0].status",
    [{ results: [{ lease: "2.1.1", outcome: "failed", status: 7 }] }],
    finish,
  ],
  ["an event has an action", "action", each("action", undefined, 7), event],
  ["an event has a payload", "payload", each("payload", undefined), event],
  [
    "an idempotency key is 1 to 255 printable characters of ASCII",
    "idempotency_key",
    each("idempotency_key", "", "x".repeat(256), "é", "a\nb", "\u007f", 7),
    event,
  ],
  ["a token has scopes", "scopes", each("scopes", [], "read"), token],
  [
    "a scope is one that there is, with an application or none",
    "scopes[0]",
    each("scopes", ["reed"], ["read:"], ["Read"], [":billing"], ["read:a\nb"], [7]),
    token,
  ],
  ["each scope is", "scopes[1]", each("scopes", ["read", "reed"]), token],
  ["a token has a name", "name", each("name", "", LONG, 7), token],
  [
    "a token ends later",
    "expires_at",
    each("expires_at", "2025-12-31T23:59:59Z", "tomorrow", "2026-02-30T00:00:00Z", 1_800_000_000_000),
    token,
  ],
  ["a token has no unknown members", "expires", each("expires", "2030-01-01T00:00:00Z"), token],
  ["a code is given", "code", [{}, ...each("code", "", "a b", LONG, 7)], exchange],
  ["and nothing with it", "y", [{ code: "x", y: 1 }], exchange],
  [
    "a replay begins at a time of the past",
    "from",
    [{ status: "all" }, ...["yesterday", LATER].map((from) => ({ from, status: "all" }))],
    replay,
    count,
  ],
  [
    "a replay ends later",
    "to",
    [FROM, "2026-02-30T00:00:00Z"].map((to) => ({ from: FROM, to, status: "all" })),
    replay,
    count,
  ],
  ["a replay selects", "status", [{ from: FROM }, { from: FROM, status: "delivered" }], replay, count],
  ["a replay has no unknown members", "until", [{ from: FROM, status: "all", until: FROM }], replay, count],
];

const MALFORMED: readonly Row[] = [
  ["a misspelt parameter lists no more", "aplication", each("aplication", "crm"), actions],
  ["nor does an empty one", "application", each("application", ""), actions, subscriptions],
  ["pages begin at 1", "page", each("page", 0, 1.5, -1), events],
  ["a page has 1 to 500 records", "limit", each("limit", 0, 501), events, deliveries, replays],
  ["a page follows a rowid", "after", each("after", -1), events],
  ["an order is asc or desc", "order", each("order", "newest"), events],
  ["an action is named", "action", each("action", ""), events, stream],
  ["times are ISO 8601 with a zone", "from", each("from", ...BAD_TIMES), events, deliveries],
  [
    "and exist",
    "to",
    each("to", "2026-01-01T24:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+24:00"),
    events,
    deliveries,
  ],
  [
    "a range is not empty",
    "to",
    [
      { from: FROM, to: FROM },
      { from: LATER, to: FROM },
    ],
    events,
    deliveries,
  ],
  ["a page number and a place exclude each other", "page", [{ page: 2, after: 3 }], events],
  ["a misspelt parameter finds no more events", "actoin", each("actoin", "a"), events],
  ["active is true or false", "active", each("active", "yes"), subscriptions],
  ["misspelt, it is refused", "activ", each("activ", true), subscriptions],
  ["deliveries follow one of them", "after", each("after", 0), deliveries],
  ["an event is a rowid", "event", each("event", 0, 1.5), deliveries],
  ["a subscription is a rowid", "subscription", each("subscription", "invoices"), deliveries],
  ["a state is one that there is", "status", each("status", "lost"), deliveries, replays],
  ["so is a cause", "cause", each("cause", "failed"), deliveries],
  ["deliveries have no pages", "page", each("page", 2), deliveries, replays],
  ["and one order", "order", each("order", "asc"), deliveries],
  ["a range is one of four", "range", each("range", "2h"), stats],
  ["rows are limited", "limit", each("limit", 0), stats],
  ["figures are by action or subscription", "by", each("by", "handler"), stats],
  [
    "topics are those there are, each once",
    "topics",
    each("topics", ["tokens"], ["events", "events"], []),
    stream,
  ],
  [
    "a stream begins at a place, a time or so long ago",
    "since",
    each("since", "yesterday", "99999999999999999999", "999999999d", "2026-02-31T00:00:00Z", "x".repeat(100)),
    stream,
  ],
  ["a stream shows states that there are", "status", each("status", "gone"), stream],
  ["a stream is of a subscription's rowid", "subscription", each("subscription", 0), stream, stats],
  ["a stream is of an action or a pattern", "action", each("action", "a..b", "*.created"), stream],
];

async function prepare({ evreg }: EvregUnderTest): Promise<void> {
  await evreg.actions.create(newAction());
  await evreg.actions.create(newAction({ action: "any", schemata: ANY_OBJECT }));
  await evreg.subscriptions.create(newSubscription());
  const { handler: _, ...pull } = newSubscription({ subscription: "pulled", mode: "pull" });
  await evreg.subscriptions.create(pull);
}

/** What is asked for with a value that cannot be: the refusal names the field, its fault and the value. */
export function refusalsContract(open: OpenEvreg): void {
  describe.each<[EvregErrorCode, readonly Row[]]>([
    ["invalid", INVALID],
    ["malformed", MALFORMED],
  ])("a request is refused as %s, as", (code, rows) => {
    const under = useSharedEvreg(open, prepare);

    it.each(rows.map(([promise, field, values, ...calls]) => ({ promise, field, values, calls })))(
      "$promise",
      async ({ field, values, calls }) => {
        for (const call of calls) {
          for (const value of values) {
            const { details } = await refusal(call(under.evreg, value as never), code);
            expect({ value, field: details["field"] }).toEqual({ value, field });
            expect(details["message"]).toEqual(expect.stringMatching(/./));
            expect(details).toHaveProperty("value");
          }
        }
      },
    );
  });
}
