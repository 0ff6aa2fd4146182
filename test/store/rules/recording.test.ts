import { describe, expect, it } from "vitest";
import {
  type ActionInForce,
  CLOCK_TOLERANCE_MS,
  type EventCandidate,
  type KeyUse,
  Recording,
} from "../../../src/store/rules/recording.ts";

const NOW = 1_000_000;

interface Candidate extends EventCandidate {
  readonly payload: string;
}

/** The first has two subscribers, the second none, the third is retired, the fourth has very many, and the fifth is keyed. */
const ACTIONS: ReadonlyMap<number, ActionInForce> = new Map([
  [1, { application: "x", revision: 3, subscribers: 2, isKeyed: false }],
  [2, { application: "y", revision: 1, subscribers: 0, isKeyed: false }],
  [3, { application: "x", revision: null, subscribers: 1, isKeyed: false }],
  [4, { application: "x", revision: 1, subscribers: 1_999, isKeyed: false }],
  [5, { application: "x", revision: 1, subscribers: 1, isKeyed: true }],
]);

function candidate(members: Partial<Candidate> = {}): Candidate {
  return { actionId: 1, revision: 3, idempotencyKey: null, nowMs: NOW, length: 2, payload: "{}", ...members };
}

function recordingWith(
  storedUses: ReadonlyMap<Candidate, KeyUse> = new Map(),
  lastMs = 0,
): Recording<Candidate> {
  return new Recording<Candidate>({
    actions: ACTIONS,
    storedUses,
    last: { event: 10, delivery: 20, lastMs },
    haveSamePayload: (one, other) => one.payload === other.payload,
  });
}

const recorded = (rowid: number, deliveries = 2, timestampedMs = NOW) =>
  ({ kind: "recorded", rowid, timestampedMs, deliveries }) as const;
const kinds = (decisions: readonly { readonly kind: string }[]): string[] =>
  decisions.map(({ kind }) => kind);

describe("one event is decided on by the action in force", () => {
  it.each([
    ["its revision", {}, recorded(11)],
    ["an action without subscribers", { actionId: 2, revision: 1 }, recorded(11, 0)],
    ["an older revision", { revision: 2 }, { kind: "stale" }],
    ["a newer revision", { revision: 4 }, { kind: "stale" }],
    ["a retired action", { actionId: 3, revision: 1 }, { kind: "stale" }],
    ["an unknown action", { actionId: 9 }, { kind: "stale" }],
  ])("%s", (_, members, decision) => {
    const recording = recordingWith();
    expect(recording.decide({ atomic: false, events: [candidate(members)] })).toEqual([decision]);
    expect(recording.accepted).toHaveLength(decision.kind === "recorded" ? 1 : 0);
  });
});

describe("a key that was used", () => {
  const use = { rowid: 5, timestampedMs: 7, revision: 1 };
  const replayed = { kind: "replayed", ...use };

  it.each([
    ["by the same event", true, {}, replayed],
    ["by another", false, {}, { kind: "key_conflict", rowid: 5 }],
    ["by the same, though its revision is not in force", true, { revision: 9 }, replayed],
    ["by the same, though its action is retired", true, { actionId: 3, revision: 1 }, replayed],
  ])("%s that is stored decides", (_, isSame, members, decision) => {
    const again = candidate({ idempotencyKey: "k", ...members });
    const recording = recordingWith(new Map([[again, { ...use, isSame }]]));
    expect(recording.decide({ atomic: false, events: [again] })).toEqual([decision]);
    expect(recording.accepted).toEqual([]);
  });

  it.each([
    ["the same event", {}, { kind: "replayed", rowid: 11, timestampedMs: NOW, revision: 3 }],
    ["another payload", { payload: "[]" }, { kind: "key_conflict", rowid: 11 }],
    ["another action", { actionId: 4, revision: 1 }, { kind: "key_conflict", rowid: 11 }],
    ["an action of another application", { actionId: 2, revision: 1 }, recorded(12, 0)],
    ["another key", { idempotencyKey: "l" }, recorded(12)],
    ["no key", { idempotencyKey: null }, recorded(12)],
  ])("in the same transaction decides on %s", (_, members, decision) => {
    const recording = recordingWith();
    const first = candidate({ idempotencyKey: "k" });
    recording.decide({ atomic: false, events: [first] });
    expect(recording.decide({ atomic: false, events: [{ ...first, ...members }] })).toEqual([decision]);
  });
});

describe("a call of several events", () => {
  it("leaves nothing behind where it is refused: no number, key, or change of the clock", () => {
    const recording = recordingWith(undefined, NOW);
    const keyed = candidate({ idempotencyKey: "k", nowMs: NOW - 2 * CLOCK_TOLERANCE_MS });
    expect(recording.decide({ atomic: false, events: [candidate()] })).toEqual([recorded(11)]);
    expect(kinds(recording.decide({ atomic: true, events: [keyed, candidate({ revision: 1 })] }))).toEqual([
      "left_out",
      "stale",
    ]);
    expect(recording.segments).toEqual([]);
    const other = { ...keyed, payload: "[]", nowMs: NOW };
    expect(recording.decide({ atomic: false, events: [other] })).toEqual([recorded(12)]);
    expect(recording.accepted.map(({ rowid }) => rowid)).toEqual([11, 12]);
  });

  it("is refused where it is atomic and makes more deliveries than it may", () => {
    const events = Array.from({ length: 5 }, () => candidate());
    expect(recordingWith().decide({ atomic: true, events }, 10)).toHaveLength(5);
    expect(() => recordingWith().decide({ atomic: true, events }, 9)).toThrow(
      "The batch makes 10 deliveries",
    );
    expect(recordingWith().decide({ atomic: false, events }, 9)).toHaveLength(5);
  });

  it("goes in for the most part where its deliveries are very many, and whole where it is atomic", () => {
    const events = Array.from({ length: 5 }, () => candidate({ actionId: 4, revision: 1 }));
    expect(recordingWith().decide({ atomic: false, events })).toHaveLength(2);
    expect(recordingWith().decide({ atomic: true, events })).toHaveLength(5);
    const large = Array.from({ length: 5 }, () => candidate({ actionId: 5, revision: 1, length: 600_000 }));
    expect(recordingWith().decide({ atomic: false, events: large })).toHaveLength(2);
    // Each call gets an event in.
    const recording = recordingWith();
    const taken = [1, 2, 3].map(() => recording.decide({ atomic: false, events }).length);
    expect(taken).toEqual([2, 1, 1]);
  });
});

it.each([
  ["ahead", 500, NOW + 500, undefined],
  ["a little behind", -CLOCK_TOLERANCE_MS, NOW, undefined],
  ["set back", -CLOCK_TOLERANCE_MS - 1, NOW - CLOCK_TOLERANCE_MS - 1, { event: 12, delivery: 23 }],
])("where the clock is %s, times rise or start anew", (_, byMs, timestampedMs, segment) => {
  const recording = recordingWith(undefined, NOW);
  const nowMs = NOW + byMs;
  const decisions = recording.decide({ atomic: false, events: [candidate(), candidate({ nowMs })] });
  expect(decisions).toEqual([recorded(11), recorded(12, 2, timestampedMs)]);
  expect(recording.segments).toEqual(segment === undefined ? [] : [{ ...segment, noticedMs: nowMs }]);
});
