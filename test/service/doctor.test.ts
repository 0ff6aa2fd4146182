import { describe, expect, it } from "vitest";
import { attentionText } from "../../src/domain/words/attention.ts";
import type { Attention } from "../../src/domain/operations.ts";
import type { Token } from "../../src/domain/token.ts";
import { type DoctorInput, findingsOf } from "../../src/service/doctor.ts";

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

const item = (given: Partial<Attention> & Pick<Attention, "reason">): Omit<Attention, "found"> => ({
  subscription_id: 7,
  application: "billing",
  subscription: "invoices",
  action: "user.created",
  since: inHours(-0.5),
  until: null,
  published_from: null,
  deliveries: 9,
  at_least: false,
  delivery_id: null,
  missed: null,
  error: null,
  ...given,
});

/** An input whose attention has these. */
const needing = (...items: readonly Omit<Attention, "found">[]): DoctorInput => ({
  ...WELL,
  attention: { items, total: items.length, subscriptions: items.length },
});

const part = (deliveries: number) => ({ deliveries, since: null });
const none = part(0);
const WELL: DoctorInput = {
  tokens: [token()],
  attention: { items: [], total: 0, subscriptions: 0 },
  backlog: {
    due: none,
    busy: none,
    paced: none,
    waiting: none,
    blocked: none,
    delivering: none,
    held: none,
    is_whole: true,
  },
  newestEvent: inHours(-1),
  damagedEvents: [],
  serves: true,
  clockShiftMs: 20,
  encrypts: true,
  isOpen: false,
  nowMs: NOW,
};

const NO_ADMIN = [token({ scopes: ["read"] }), token({ expires_at: inHours(-1) })];
const LATE = { ...WELL.backlog, due: { deliveries: 1, since: inHours(-1 / 6) }, paced: part(200_000) };

describe("findings of the doctor", () => {
  it.each([
    ["all is well", [token()]],
    [
      "a token ends soon that was made for hours, as for a browser",
      [token(), token({ timestamped: inHours(-1), expires_at: inHours(11) })],
    ],
  ])("are none where %s", (_, tokens) => {
    for (const finding of findingsOf({ ...WELL, tokens })) {
      expect(finding).toMatchObject({ status: "ok", remedy: null });
    }
  });

  it.each<[string, Partial<DoctorInput>, string, "warning" | "problem", string]>([
    ["a key that is missing", { encrypts: false }, "encryption", "warning", "as they are"],
    ["a clock behind the events", { newestEvent: inHours(1) }, "clock", "problem", "one of them is wrong"],
    ["a clock that was set back", { clockShiftMs: -90_000 }, "clock", "warning", "was moved with it"],
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
      { tokens: NO_ADMIN },
      "tokens",
      "warning",
      "No token has the scope admin",
    ],
    [
      "deliveries that are late",
      { backlog: LATE },
      "backlog",
      "warning",
      "Deliveries: 1 due, 0 behind others of their subscriptions, 200000 at a rate limit or for a consumer, 0 under way, 0 waiting for their time, 0 behind one that blocks, 0 held. The first has been due since 2026-03-01T11:50:00.000Z.",
    ],
  ])("include: %s", (_, given, check, status, found) => {
    const findings = findingsOf({ ...WELL, ...given });
    expect(findings.filter((one) => one.status !== "ok")).toEqual([
      { check, status, found: expect.stringContaining(found), remedy: expect.stringMatching(/^[A-Z].*\.$/) },
    ]);
  });

  it.each([
    [
      item({ reason: "deactivated", error: "The handler answered 410 Gone." }),
      "problem",
      "update 7 --active",
    ],
    [item({ reason: "blocked", delivery_id: 12 }), "warning", "deliveries skip 12"],
    [item({ reason: "blocked", delivery_id: 12, since: inHours(-2) }), "problem", "deliveries retry 12"],
    [item({ reason: "failing" }), "warning", "subscriptions replay 7 --status waiting"],
    [item({ reason: "failing", since: inHours(-2) }), "problem", "update 7 --handler URL"],
    [item({ reason: "failing", error: "address_refused" }), "warning", "delivery.allowNetworks"],
    [
      item({ reason: "failed", published_from: inHours(-3) }),
      "warning",
      "replay 7 --from 2026-03-01T09:00:00.000Z --status failed",
    ],
    [item({ reason: "unclaimed" }), "warning", "subscriptions delete 7"],
    [item({ reason: "slowed", since: null, until: inHours(1) }), "warning", "subscriptions attempts 7"],
    [
      item({ reason: "paused", missed: 3 }),
      "warning",
      "update 7 --active`; what was missed can be sent then with `evreg subscriptions replay 7 --from 2026-03-01T11:30:00.000Z --status missed`.",
    ],
    [item({ reason: "paused", since: null, missed: 3 }), "warning", "update 7 --active`."],
  ] as const)("say of %o that it is a %s, with the command %s", (one, status, remedy) => {
    const findings = findingsOf(needing(one)).filter((finding) => finding.status !== "ok");
    expect(findings).toEqual([
      { check: "handlers", status, found: attentionText(one), remedy: expect.stringContaining(remedy) },
    ]);
  });

  it("name the gravest three of what needs a person, with what to do about the first", () => {
    const failing = [1, 2, 3, 4].map((id) => item({ reason: "failing", subscription_id: id }));
    const finding = findingsOf(needing(item({ reason: "deactivated" }), ...failing)).find(
      ({ check }) => check === "handlers",
    );
    expect(finding).toMatchObject({
      status: "problem",
      found: expect.stringMatching(
        /^billing\/invoices was deactivated .* fails .* fails .* 2 more are in the list of `evreg attention`\.$/,
      ),
      remedy: expect.stringContaining("update 7 --active"),
    });
  });

  it.each([
    ["a server has that needs one", {}, "warning"],
    ["no server has", { serves: false }, "ok"],
    ["a server has that needs none", { isOpen: true }, "ok"],
  ] as const)("of no token at all, in a folder that %s", (_, more, status) => {
    const found = findingsOf({ ...WELL, tokens: [], ...more }).find(({ check }) => check === "tokens");
    expect(found?.status).toBe(status);
  });
});
