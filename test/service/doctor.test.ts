import { describe, expect, it } from "vitest";
import type { Subscription } from "../../src/domain/subscription.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import type { Token } from "../../src/domain/token.ts";
import { findingsOf, type DoctorInput } from "../../src/service/diagnosis/doctor.ts";
import { openLocalService } from "../support/local-service.ts";

const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const inHours = (hours: number): string => new Date(NOW + hours * 3_600_000).toISOString();

const token = (given: Partial<Token> = {}): Token => ({
  rowid: 1,
  name: "ops",
  scopes: ["admin"],
  expires_at: null,
  last_used_at: null,
  timestamped: inHours(-100),
  ...given,
});

const subscription = (given: Partial<Subscription> = {}): Subscription => ({
  ...NO_SETTINGS,
  rowid: 7,
  application: "billing",
  subscription: "invoices",
  action: "user.created",
  mode: "push",
  handler: "https://hooks.example.com/secret-path",
  max_retries: 5,
  active: true,
  disabled_reason: null,
  bearer: "secret",
  previous_secret_until: null,
  failing_since: null,
  slowed_until: null,
  blocked_by: null,
  blocked_keys: null,
  last_claim_at: null,
  timestamped: inHours(-100),
  ...given,
});

const part = (deliveries: number) => ({ deliveries, sinceMs: undefined });
const none = part(0);
const WELL: DoctorInput = {
  tokens: [token()],
  subscriptions: [subscription(), subscription({ active: false })],
  allowHttp: true,
  allowNetworks: [],
  backlog: {
    due: none,
    busy: none,
    paced: none,
    waiting: none,
    blocked: none,
    delivering: none,
    held: none,
    isWhole: true,
  },
  newestEvent: inHours(-1),
  damagedEvents: [],
  brokenSchemas: [],
  missingSince: new Map(),
  serves: true,
  clockShiftMs: 20,
  encrypts: true,
  hasTokenFile: true,
  isOpen: false,
  nowMs: NOW,
};

const backlogOf = (input: DoctorInput) => findingsOf(input).find(({ check }) => check === "backlog");

describe("findings of the doctor", () => {
  it("are none where all is well", () => {
    for (const finding of findingsOf(WELL)) expect(finding).toMatchObject({ status: "ok", remedy: null });
  });

  it("say nothing of the end of a token that was made for hours, as for a browser", () => {
    const browser = token({ name: "browser", timestamped: inHours(-1), expires_at: inHours(11) });
    for (const finding of findingsOf({ ...WELL, tokens: [token(), browser] })) {
      expect(finding).toMatchObject({ status: "ok", remedy: null });
    }
  });

  it("count paused subscriptions, also where all is well", () => {
    expect(findingsOf(WELL)).toContainEqual(
      expect.objectContaining({
        found: "1 active subscription, none of them failing; 1 more is paused.",
      }),
    );
    const nobody = findingsOf({ ...WELL, subscriptions: [] });
    expect(nobody).toContainEqual(
      expect.objectContaining({
        found: "There are no subscriptions: events are stored, and sent to nobody.",
      }),
    );
  });

  it.each<[string, Partial<DoctorInput>, string, "warning" | "problem", string]>([
    ["a key that is missing", { encrypts: false }, "encryption", "warning", "as they are"],
    ["a clock behind the events", { newestEvent: inHours(1) }, "clock", "problem", "one of them is wrong"],
    [
      "a clock that was set back",
      { clockShiftMs: -90_000 },
      "clock",
      "warning",
      "What waits was moved with it",
    ],
    ["a clock that was set ahead", { clockShiftMs: 90_000 }, "clock", "warning", "set 90 s ahead"],
    [
      "a token near its end",
      { tokens: [token(), token({ name: "ci", expires_at: inHours(24) })] },
      "tokens",
      "warning",
      "1 token expires within 14 days: ci (2026-03-02T12:00:00.000Z)",
    ],
    [
      "that nobody can manage tokens",
      { tokens: [token({ scopes: ["read"] }), token({ expires_at: inHours(-1) })] },
      "tokens",
      "warning",
      "No token has the scope admin",
    ],
    [
      "that nobody may have the first token",
      { tokens: [token({ last_used_at: null })], hasTokenFile: false },
      "tokens",
      "warning",
      "was ever used",
    ],
    [
      "consumers that fail, which no handler does",
      {
        subscriptions: [
          subscription({ mode: "pull", handler: null, failing_since: inHours(-0.5) }),
          subscription({ failing_since: inHours(-0.5) }),
        ],
      },
      "handlers",
      "warning",
      "1 handler fails or cannot be reached, and 1 pull subscription's consumers fail or let leases run out: ",
    ],
    [
      "a handler that has failed for a moment",
      { subscriptions: [subscription({ failing_since: inHours(-0.5) })] },
      "handlers",
      "warning",
      "7 (billing/invoices) since 2026-03-01T11:30:00.000Z",
    ],
    [
      "a handler that has failed for long",
      { subscriptions: [subscription({ failing_since: inHours(-2) })] },
      "handlers",
      "problem",
      "1 handler fails or cannot be reached",
    ],
    [
      "a handler at an address that is not opened",
      {
        subscriptions: [
          subscription({ failing_since: inHours(-0.5), handler: "http://10.0.0.7/secret-path" }),
        ],
      },
      "handlers",
      "warning",
      "The handler of 7 (billing/invoices): its host is not allowed: 10.0.0.7 is in 10.0.0.0/8",
    ],
    [
      "an ordered subscription that is blocked",
      { subscriptions: [subscription({ blocked_by: 12 }), subscription({ active: false, blocked_by: 13 })] },
      "order",
      "warning",
      "1 ordered subscription is blocked: 7 (billing/invoices) by delivery 12.",
    ],
    [
      "subscriptions that were deactivated",
      {
        subscriptions: Array.from({ length: 5 }, () =>
          subscription({ active: false, disabled_reason: "410 Gone" }),
        ),
      },
      "handlers",
      "problem",
      "5 subscriptions were deactivated: 7 (billing/invoices), 7 (billing/invoices), 7 (billing/invoices) and 2 more",
    ],
    [
      "that all subscriptions are paused",
      { subscriptions: [subscription({ active: false })] },
      "handlers",
      "warning",
      "All subscriptions are paused: 7 (billing/invoices). New events of user.created are sent to nobody.",
    ],
    [
      "that those to one action are",
      { subscriptions: [subscription(), subscription({ active: false, action: "user.deleted" })] },
      "handlers",
      "warning",
      "These subscriptions are paused: 7 (billing/invoices). New events of user.deleted are",
    ],
    [
      "deliveries that are late",
      { backlog: { ...WELL.backlog, due: { deliveries: 9, sinceMs: NOW - 600_000 } } },
      "backlog",
      "warning",
      "due since 2026-03-01T11:50:00.000Z",
    ],
  ])("include: %s", (_, given, check, status, found) => {
    const findings = findingsOf({ ...WELL, ...given });
    expect(findings.filter((one) => one.status !== "ok")).toEqual([
      { check, status, found: expect.stringContaining(found), remedy: expect.stringMatching(/^[A-Z].*\.$/) },
    ]);
    expect(JSON.stringify(findings)).not.toContain("secret-path");
  });

  it("have commands with the number of the subscription", () => {
    const failing = [subscription({ failing_since: inHours(-0.5) })];
    const inputs = [
      {
        subscriptions: failing,
        backlog: { ...WELL.backlog, waiting: { deliveries: 9, sinceMs: undefined } },
      },
      { subscriptions: [subscription({ active: false, disabled_reason: "410 Gone" })] },
      { subscriptions: [subscription({ active: false })] },
    ];
    const remedies = inputs
      .flatMap((given) => findingsOf({ ...WELL, ...given }))
      .flatMap(({ remedy }) => remedy ?? []);
    expect(remedies).toHaveLength(4);
    for (const remedy of remedies) {
      expect(remedy).toMatch(/`evreg [^`]* 7\b/);
      expect(remedy).not.toMatch(/`evreg [^`]*\bID\b/);
    }
  });

  it("advise what works for a pull subscription, and leave out the one of a listener that was closed", () => {
    const pull = { mode: "pull", handler: null, failing_since: inHours(-2) } as const;
    const warned = findingsOf({ ...WELL, subscriptions: [subscription(pull)] });
    expect(warned.find(({ check }) => check === "handlers")?.remedy).toBe(
      "See why with `evreg subscriptions attempts 7`; fix its consumer.",
    );
    const listened = { ...pull, expires_after_ms: 86_400_000 };
    const handlersOf = (last_claim_at: string) =>
      findingsOf({ ...WELL, subscriptions: [subscription({ ...listened, last_claim_at })] }).find(
        ({ check }) => check === "handlers",
      );
    expect(handlersOf(inHours(-0.01))).toMatchObject({ status: "problem" });
    expect(handlersOf(inHours(-0.05))).toMatchObject({ status: "ok" });
  });

  it("say from when on what a pause has missed can be sent, where that is known", () => {
    const subscriptions = [subscription({ active: false })];
    const remedyOf = (missingSince: DoctorInput["missingSince"]) =>
      findingsOf({ ...WELL, subscriptions, missingSince }).find(({ check }) => check === "handlers")?.remedy;
    const active = "Unless it is meant, go on with `evreg subscriptions update 7 --active`";
    expect(remedyOf(new Map([[7, inHours(-3)]]))).toBe(
      `${active}; what was missed can be sent then with \`evreg subscriptions replay 7 --from 2026-03-01T09:00:00.000Z --status missed\`.`,
    );
    expect(remedyOf(new Map([[7, null]]))).toBe(`${active}.`);
    expect(remedyOf(new Map())).toBe(`${active}.`);
  });

  it("expect no token in a folder that no server has that needs one", () => {
    const stopped = findingsOf({ ...WELL, tokens: [], hasTokenFile: false, serves: false });
    expect(stopped.find(({ check }) => check === "tokens")).toMatchObject({ status: "ok" });
    const served = findingsOf({ ...WELL, tokens: [], hasTokenFile: false });
    expect(served.find(({ check }) => check === "tokens")).toMatchObject({ status: "warning" });
  });

  it("count the deliveries that wait where a handler fails", () => {
    const backlog = { ...WELL.backlog, due: part(1), busy: part(10), waiting: part(13), blocked: part(11) };
    expect(backlogOf({ ...WELL, backlog })?.status).toBe("ok");
    const subscriptions = [subscription({ failing_since: inHours(-0.1) })];
    expect(backlogOf({ ...WELL, backlog, subscriptions })).toMatchObject({
      status: "warning",
      found: expect.stringMatching(/^24 deliveries wait while handlers fail\./),
      remedy: expect.stringContaining(
        "at once with `evreg deliveries retry --status waiting --subscription 7`",
      ),
    });
    const slow = { ...WELL.backlog, due: part(1), busy: part(10) };
    expect(backlogOf({ ...WELL, backlog: slow, subscriptions })?.status).toBe("ok");
  });

  it("accept a server without tokens where none is needed", () => {
    const found = findingsOf({ ...WELL, tokens: [], isOpen: true }).find(({ check }) => check === "tokens");
    expect(found?.status).toBe("ok");
  });
});

const action = (name: string, maximum: number | null) => ({
  action: name,
  application: "shop",
  schemata: { properties: { n: { maximum } } },
});

it("the doctor names actions whose schema in the data file is not valid, and what it says mends them", async () => {
  const local = await openLocalService();
  // Past the service, as an earlier version of it did.
  for (const name of ["a.broken", "b.broken"])
    await local.store.catalog.createAction(action(name, null), NOW);
  await local.evreg.actions.create(action("c.whole", 5));
  const broken = async () =>
    (await local.evreg.doctor()).data.filter(({ check }) => check === "schemas").map(({ found }) => found);
  expect(await broken()).toEqual([expect.stringContaining("2 actions have schemas that are not valid")]);
  expect((await broken())[0]).toMatch(/: a\.broken, b\.broken\. Of a\.broken: .*n\.maximum/);
  for (const name of ["a.broken", "b.broken"]) {
    const { schemata } = action(name, 5);
    await local.evreg.actions.update(name, { schemata });
  }
  expect(await broken()).toEqual([]);
  await local.close();
});
