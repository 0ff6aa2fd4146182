import { describe, expect, it } from "vitest";
import type { EvregErrorCode } from "../../src/domain/error.ts";
import { NO_SETTINGS, settingsIn } from "../../src/domain/subscription-settings.ts";
import type { Evreg } from "../../src/evreg.ts";
import { fieldName } from "../../src/json/field-path.ts";
import type { Fields } from "../../src/model/field.ts";
import { SUBSCRIPTION } from "../../src/model/subscription.ts";
import { ANY_OBJECT, newAction, newEvent, newSubscription, refusal, useSharedEvreg } from "./harness.ts";
import type { EvregUnderTest, OpenEvreg } from "./harness.ts";

/** Asks for something with these members, one of which cannot be. */
type Call = (evreg: Evreg, members: never) => Promise<unknown>;

/** What is promised, the field that a refusal names, and values that are refused there. */
type Refusal = readonly [promise: string, field: string, values: readonly unknown[]];

interface Row {
  readonly promise: string;
  readonly field: string;
  readonly values: readonly unknown[];
  /** What refuses them. */
  readonly calls: readonly Call[];
}

/** A subscription to be made; those there are have the rowids below. */
const OTHER = newSubscription({ subscription: "other" });
const PUSH = 1;
const PULL = 2;
const FROM = "2026-01-01T00:00:00.000Z";
const DAY_MS = 86_400_000;
const DRAFTS = "https://json-schema.org/draft";
const LATER = "2026-01-02T00:00:00Z";
const BAD_TIMES = ["yesterday", "2026-02-29T00:00:00Z"];

const action: Call = ({ actions }, members: object) => actions.create({ ...newAction(), ...members });
const actionChange: Call = ({ actions }, members: never) => actions.update("user.created", members);
const check: Call = ({ actions }, candidate: never) => actions.check("user.created", candidate);
const revisions: Call = ({ actions }, query: never) => actions.revisions("user.created", query);
const subscription: Call = (evreg, members: object) => evreg.subscriptions.create({ ...OTHER, ...members });
const change: Call = ({ subscriptions }, members: object) => subscriptions.update(PUSH, members);
const pulled: Call = ({ subscriptions }, members: object) => {
  const { handler: _, ...others } = OTHER;
  return subscriptions.create({ ...others, mode: "pull", ...members });
};
const pullChange: Call = ({ subscriptions }, members: object) => subscriptions.update(PULL, members);
const rotation: Call = ({ subscriptions }, options: never) => subscriptions.rotateSecret(PUSH, options);
const attempts: Call = ({ subscriptions }, query: never) => subscriptions.attempts(PUSH, query);
const claim: Call = ({ subscriptions }, members: object) => subscriptions.claim(PULL, members);
const finish: Call = ({ subscriptions }, results: never) => subscriptions.finish(PULL, results);
const event: Call = ({ events }, members: object) => events.publish({ ...newEvent(), ...members });
const token: Call = ({ tokens }, members: object) =>
  tokens.create({ name: "n", scopes: ["read"], ...members });
const replay: Call = ({ replays }, input: never) => replays.start(PUSH, input);
const count: Call = ({ replays }, input: never) => replays.count(PUSH, input);
const actions: Call = (evreg, query: never) => evreg.actions.list(query);
const events: Call = (evreg, query: never) => evreg.events.list(query);
const subscriptions: Call = (evreg, query: never) => evreg.subscriptions.list(query);
const deliveries: Call = (evreg, query: never) => evreg.deliveries.list(query);
const replays: Call = (evreg, query: never) => evreg.replays.list(query);
const stats: Call = (evreg, query: never) => evreg.stats(query);
const stream: Call = (evreg, query: never) => evreg.stream(query);
const audit: Call = (evreg, query: never) => evreg.audit.list(query);
const attention: Call = (evreg, query: never) => evreg.attention(query);

const revising = [actionChange, check];
const schemaing = [action, ...revising];
const subscribing = [subscription, change];
const pulling = [pulled, pullChange];
const replaying = [replay, count];
const allLists = [events, deliveries, replays, audit];
const timedLists = [events, deliveries, audit];
const ownedLists = [actions, subscriptions];
const ofActions = [events, stream];
const ofStates = [deliveries, replays];
const ofSubscriptions = [stream, stats];

/** The same member with each of these values. */
function each(member: string, ...values: readonly unknown[]): readonly unknown[] {
  return values.map((value) => ({ [member]: value }));
}

const one = (more: object): object => ({ results: [{ lease: "2.1.1", outcome: "failed", ...more }] });
const replayed = (more: object): object => ({ from: FROM, status: "all", ...more });

/** Members that are needed, each left out. */
function needed(...members: readonly string[]): readonly Refusal[] {
  return members.map((member) => [`${member} is needed`, member, each(member, undefined)]);
}

function refusedBy(calls: Call | readonly Call[], refusals: readonly Refusal[]): readonly Row[] {
  return refusals.map(([promise, field, values]) => ({ promise, field, values, calls: [calls].flat() }));
}

/** No refusal repeats it: it may be a credential. */
const SECRET = "credential";
const BAD_HEADERS = [
  7,
  `${SECRET}\r\nHost: b`,
  ` ${SECRET}`,
  `${SECRET} `,
  `${SECRET}\0`,
  `${SECRET}ä`,
  `${SECRET}\t`,
  SECRET.repeat(200),
  [SECRET],
];
const BAD_HEADER_NAMES = ["", " X", "X Y", "X:", "Ä", "X\r\nHost", "x".repeat(129)];
const MANY_HEADERS = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`X-${at}`, "x".repeat(1_000)]));
const MANY_WAITS = Array.from({ length: 21 }, () => 1);
const LONG = "x".repeat(129);
// One of each kind; the rules of names and addresses have tables of their own.
const NAMES = ["", "a..b", LONG, 7, null];
const LABELS = ["   ", "a\nb", LONG, 7, null];
const HANDLERS = ["/hooks", "http://hooks.example.com/", "https://10.0.0.1/", 7, null];

/** The settings of subscriptions that are a number within bounds, and the mode that alone has them. */
const BOUNDED = Object.entries(SUBSCRIPTION as Fields).flatMap(([name, { none, only, change: schema }]) => {
  const { minimum, maximum } = (schema ?? {}) as { minimum?: number; maximum?: number };
  return none === undefined || minimum === undefined || maximum === undefined
    ? []
    : [{ name, minimum, maximum, mode: only?.mode }];
});

/** A setting that a mode has is refused beyond its bounds, and one that it has not whatever its value. */
function boundsIn(ofMode: "push" | "pull"): readonly Refusal[] {
  return BOUNDED.map(({ name, minimum, maximum, mode = ofMode }) =>
    mode === ofMode
      ? [`${name} is within its bounds`, name, each(name, minimum - 1, maximum + 1)]
      : [`${ofMode} has no ${name}`, name, each(name, minimum)],
  );
}

const INVALID: readonly Row[] = [
  ...refusedBy(action, [
    ["an action has a name of dotted segments", "action", each("action", ...NAMES)],
    ["an application has a printable name", "application", each("application", ...LABELS)],
    ...needed("action", "application", "schemata"),
    ["an action has no unknown members", "schema", each("schema", {})],
  ]),
  ...refusedBy(schemaing, [
    ["a schema is an object", "schemata", each("schemata", true, [])],
    ["a type is one that there is", "schemata.type", each("schemata", { type: "objekt" })],
    [
      "a fault has its place in the schema",
      "schemata.properties.age.type",
      each("schemata", { properties: { age: { type: "numbre" } } }),
    ],
    ["a keyword has a value of its kind", "schemata.required", each("schemata", { required: "email" })],
    ["a schema is of Draft 7", "schemata.$schema", each("schemata", { $schema: `${DRAFTS}/2020-12/schema` })],
    ["no schema is fetched", "schemata.$ref", each("schemata", { $ref: "https://example.com/schema.json" })],
    [
      "a pattern is one",
      "schemata.properties.a.pattern",
      each("schemata", { properties: { a: { pattern: "(" } } }),
    ],
  ]),
  ...refusedBy(revising, [
    ["a change needs one", "schemata", [{}]],
    ["a change has no unknown members", "aplication", [{ schemata: ANY_OBJECT, aplication: "crm" }]],
  ]),
  ...refusedBy(actionChange, [["an action keeps an application", "application", each("application", "")]]),
  ...refusedBy(
    [action, actionChange],
    [
      ["a mode is one that there is", "compatibility", each("compatibility", "backward")],
      ["it compares with the schema in force", "compatibility_against", each("compatibility_against", "all")],
    ],
  ),
  ...refusedBy(check, [
    ["a check has a mode that there is", "mode", [{ schemata: ANY_OBJECT, mode: "backward" }]],
    [
      "a check replays 0 to 10,000 events",
      "replay",
      [-1, 10_001].map((most) => ({ schemata: ANY_OBJECT, replay: most })),
    ],
  ]),
  ...refusedBy(subscribing, [
    ["a handler is an https URL outside", "handler", each("handler", ...HANDLERS)],
    ["retries are 0 to 20", "max_retries", each("max_retries", -1, 21, 2.5, "5", null)],
    ["active is true or false", "active", each("active", "true", null)],
    ["a subscription has a printable name", "subscription", each("subscription", "", "a\nb")],
    ["so has its application", "application", each("application", " ")],
    ["a subscription has an action's name or a pattern", "action", each("action", "a..b")],
    ["a secret is not chosen", "secret", each("secret", "whsec_mine")],
    ["a rowid is not chosen", "rowid", each("rowid", 1)],
    ["a filter is a schema", "filter", each("filter", "x")],
    ["attempts under way are a whole number", "max_in_flight", each("max_in_flight", 1.5)],
    ["an attempt takes 0.1 to 60 s", "timeout_ms", each("timeout_ms", 99, 60_001)],
    ...boundsIn("push"),
    [
      "a header is a line of text",
      'headers["X-Team"]',
      each("headers", ...BAD_HEADERS.map((value) => ({ "X-Team": value }))),
    ],
    ...BAD_HEADER_NAMES.map((name): Refusal => [
      `a header has no name such as ${JSON.stringify(name)}`,
      fieldName(["headers", name]),
      each("headers", { [name]: "x" }),
    ]),
    ["headers are few", "headers", each("headers", [], MANY_HEADERS)],
    ...["Authorization", "content-length", "X_Evreg_Signature", "__proto__"].map((name): Refusal => [
      `only evreg sets ${name}`,
      `headers["${name}"]`,
      each("headers", JSON.parse(`{"${name}": "${SECRET}"}`)),
    ]),
    ["a schedule has 1 to 20 waits", "retry_schedule", each("retry_schedule", [], MANY_WAITS)],
    ["a wait is no time of the past", "retry_schedule[0]", each("retry_schedule", [-1])],
    ["ordered is true, false or by a key", "ordered", each("ordered", null)],
    [
      "a key is a JSON pointer",
      "ordered.key",
      each("ordered", {}, ...["customer", "", "/a~2", `/${"a".repeat(256)}`].map((key) => ({ key }))),
    ],
    ["an order has no unknown members", "ordered.by", each("ordered", { key: "/a", by: 1 })],
    [
      "only an order blocks or skips",
      "on_exhausted",
      [{ on_exhausted: "stop", ordered: true }, { on_exhausted: "skip" }],
    ],
    [
      "a bearer value is a word of up to 1,024 characters of ASCII",
      "bearer_token",
      [
        ...each("bearer_token", "", `two ${SECRET}`, `${SECRET}\n`, `${SECRET}ü`, SECRET.repeat(103), null),
        ...each("bearer_token", 1_234_567, [SECRET]),
        { bearer: "own" },
      ],
    ],
    [
      "a bearer is own, none or the secret",
      "bearer",
      [
        { bearer: "none", bearer_token: SECRET },
        { bearer: "secret", bearer_token: SECRET },
        ...each("bearer", "mine", null),
      ],
    ],
  ]),
  ...refusedBy(change, [
    ["a change names no application", "application", each("application", "x")],
    ["and no other name", "subscription", each("subscription", "x")],
    ["a misspelt setting changes nothing", "retries", each("retries", 1)],
  ]),
  ...refusedBy(rotation, [
    ["secrets overlap for 30 days at most", "overlap_ms", each("overlap_ms", -1, 0.5, 30 * DAY_MS + 1, "1h")],
    ["a rotation has no unknown members", "overlap", each("overlap", 1)],
  ]),
  ...refusedBy(subscription, [...needed("application", "subscription", "action", "handler")]),
  ...refusedBy(pulled, [
    ["a push subscription has a handler", "handler", [{ mode: "push" }, { mode: "push", handler: null }]],
    ["a mode is push or pull", "mode", each("mode", "poll")],
    ["it lasts an hour or longer", "expires_after_ms", each("expires_after_ms", 3_599_999)],
    ...boundsIn("pull"),
  ]),
  ...refusedBy(pulling, [["a pull subscription has no handler", "handler", each("handler", OTHER.handler)]]),
  ...refusedBy(claim, [
    ["a claim is for 1 to 100", "max", each("max", 0, 101)],
    ["a claim waits for 20 s at most", "wait_ms", each("wait_ms", 20_001)],
    ["a lease is a second to an hour", "lease_ms", each("lease_ms", 999, 3_600_001)],
    ["a consumer has a printable name", "consumer", each("consumer", " ")],
    ["a claim has no unknown members", "count", each("count", 1)],
  ]),
  ...refusedBy(finish, [
    ["results are given", "results", [{}, { results: [] }]],
    [
      "a lease is one of this subscription",
      "results[0].lease",
      ["x", "1.1.1"].map((lease) => one({ lease })),
    ],
    ["an outcome is one that there is", "results[0].outcome", [one({ outcome: "done" })]],
    ["a status is one of HTTP", "results[0].status", [one({ status: 7 })]],
  ]),
  ...refusedBy(event, [
    ["an event has an action", "action", each("action", undefined, 7)],
    ["an event has a payload", "payload", each("payload", undefined)],
    [
      "an idempotency key is 1 to 255 printable characters of ASCII",
      "idempotency_key",
      each("idempotency_key", "", "x".repeat(256), "é", "a\nb", "\u007f", 7),
    ],
  ]),
  ...refusedBy(events, [
    ["a search is by a type that there is", "where.type", each("where", '{"type":"objekt"}')],
    ["and by a schema that is all there", "where.$ref", each("where", '{"$ref":"https://example.com/"}')],
  ]),
  ...refusedBy(token, [
    ["a token has scopes", "scopes", each("scopes", [], "read")],
    [
      "a scope is one that there is, with an application or none",
      "scopes[0]",
      each("scopes", ["reed"], ["read:"], ["Read"], [":billing"], ["read:a\nb"], [7]),
    ],
    ["each scope is", "scopes[1]", each("scopes", ["read", "reed"])],
    ["a token has a name", "name", each("name", "", LONG, 7)],
    [
      "a token ends later",
      "expires_at",
      each("expires_at", "2025-12-31T23:59:59Z", "tomorrow", "2026-02-30T00:00:00Z", 1_800_000_000_000),
    ],
    ["a token has no unknown members", "expires", each("expires", "2030-01-01T00:00:00Z")],
  ]),
  ...refusedBy(replaying, [
    ["a replay begins at a time", "from", [{ status: "all" }, replayed({ from: "yesterday" })]],
    ["and at one of the past", "from", [replayed({ from: LATER })]],
    ["a replay ends later", "to", [FROM, "2026-02-30T00:00:00Z"].map((to) => replayed({ to }))],
    ["a replay selects", "status", [{ from: FROM }, replayed({ status: "delivered" })]],
    ["a replay has no unknown members", "until", [replayed({ until: FROM })]],
  ]),
];

const MALFORMED: readonly Row[] = [
  ...refusedBy(revisions, [
    ["a page has 1 to 50 revisions", "limit", each("limit", 51)],
    ["revisions have no pages", "page", each("page", 2)],
  ]),
  ...refusedBy(attempts, [["1 to 100 attempts are shown", "limit", each("limit", 0, 101, 1.5)]]),
  ...refusedBy(attention, [["what needs a person is limited", "limit", each("limit", 0)]]),
  ...refusedBy(actions, [["a misspelt parameter lists no more", "aplication", each("aplication", "crm")]]),
  ...refusedBy(ownedLists, [["nor does an empty one", "application", each("application", "")]]),
  ...refusedBy(events, [
    ["pages begin at 1", "page", each("page", 0, 1.5, -1)],
    ["a page follows a rowid", "after", each("after", -1)],
    ["a search has no pages", "page", [{ where: "{}", page: 2 }]],
    [
      "a search is by a schema in JSON",
      "where",
      each("where", "{", "[]", `{"description":"${"x".repeat(5_000)}"}`),
    ],
    ["a key is not empty", "idempotency_key", each("idempotency_key", "")],
    ["an order is asc or desc", "order", each("order", "newest")],
    ["a page number and a place exclude each other", "page", [{ page: 2, after: 3 }]],
    ["a misspelt parameter finds no more events", "actoin", each("actoin", "a")],
  ]),
  ...refusedBy(allLists, [["a page has 1 to 500 records", "limit", each("limit", 0, 501)]]),
  ...refusedBy(ofActions, [["an action is named", "action", each("action", "")]]),
  ...refusedBy(timedLists, [
    ["times are ISO 8601 with a zone", "from", each("from", ...BAD_TIMES)],
    [
      "and exist",
      "to",
      each("to", "2026-01-01T24:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+24:00"),
    ],
    [
      "a range is not empty",
      "to",
      [
        { from: FROM, to: FROM },
        { from: LATER, to: FROM },
      ],
    ],
  ]),
  ...refusedBy(subscriptions, [
    ["active is true or false", "active", each("active", "yes")],
    ["misspelt, it is refused", "activ", each("activ", true)],
  ]),
  ...refusedBy(deliveries, [
    ["deliveries follow one of them", "after", each("after", 0)],
    ["an event is a rowid", "event", each("event", 0, 1.5)],
    ["a subscription is a rowid", "subscription", each("subscription", "invoices")],
    ["so is a cause", "cause", each("cause", "failed")],
    ["and one order", "order", each("order", "asc")],
  ]),
  ...refusedBy(ofStates, [
    ["a state is one that there is", "status", each("status", "lost")],
    ["deliveries have no pages", "page", each("page", 2)],
  ]),
  ...refusedBy(stats, [
    ["a range is one of four", "range", each("range", "2h")],
    ["rows are limited", "limit", each("limit", 0)],
    ["figures are by action or subscription", "by", each("by", "handler")],
    ["figures are of one or the other", "subscription", [{ action: "a", subscription: 1 }]],
    ["and not by actions where they are of one", "by=action", [{ by: "action", subscription: 1 }]],
    ["nor by subscriptions", "by=subscription", [{ by: "subscription", action: "a" }]],
  ]),
  ...refusedBy(stream, [
    ["topics are those there are, each once", "topics", each("topics", ["tokens"], ["events", "events"], [])],
    [
      "a stream begins at a place, a time or so long ago",
      "since",
      each(
        "since",
        "yesterday",
        "99999999999999999999",
        "999999999d",
        "2026-02-31T00:00:00Z",
        "x".repeat(100),
      ),
    ],
    ["a stream shows states that there are", "status", each("status", "gone")],
    ["a stream is of an action or a pattern", "action", each("action", "a..b", "*.created")],
  ]),
  ...refusedBy(ofSubscriptions, [
    ["a stream is of a subscription's rowid", "subscription", each("subscription", 0)],
  ]),
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

    it.each(rows)("$promise", async ({ field, values, calls }) => {
      for (const call of calls) {
        for (const value of values) {
          const error = await refusal(call(under.evreg, value as never), code);
          const { details } = error;
          expect({ value, field: details["field"] }).toEqual({ value, field });
          expect(details["message"]).toEqual(expect.stringMatching(/./));
          expect(details).toHaveProperty("value");
          expect(JSON.stringify(error.body())).not.toMatch(/credential|1234567/);
        }
      }
    });

    it("where a time cannot be, with its unit", async () => {
      const times: readonly (readonly [object, string])[] = [
        [{ timeout_ms: "24h" }, "timeout_ms: must be an integer or null, in milliseconds"],
        [{ timeout_ms: 99 }, "timeout_ms: must be at least 100, in milliseconds"],
        [{ retry_schedule: ["1m"] }, "retry_schedule[0]: must be an integer, in milliseconds"],
      ];
      for (const [members, message] of times) {
        expect((await refusal(change(under.evreg, members as never), "invalid")).message).toBe(message);
      }
    });

    it("and nothing is made or changed", async () => {
      const { data } = await under.evreg.subscriptions.list();
      expect(data.map((record) => [record.subscription, record.handler, settingsIn(record)])).toEqual([
        ["invoices", OTHER.handler, NO_SETTINGS],
        ["pulled", null, NO_SETTINGS],
      ]);
      expect((await under.evreg.events.list()).meta.total).toBe(0);
      expect((await under.evreg.replays.list()).data).toEqual([]);
    });
  });
}
