import { describe, expect, it } from "vitest";
import type { EventRecord } from "../../../src/store/events.ts";
import { type ActionInForce, Recording } from "../../../src/store/rules/recording.ts";

const NOW = 1_000_000;

/** The first has two subscribers, the second very many, and the third is keyed. */
const ACTIONS: ReadonlyMap<number, ActionInForce> = new Map([
  [1, { application: "x", revision: 3, subscribers: 2, isKeyed: false }],
  [2, { application: "x", revision: 1, subscribers: 1_999, isKeyed: false }],
  [3, { application: "x", revision: 1, subscribers: 1, isKeyed: true }],
]);

function candidate(members: Partial<EventRecord> = {}): EventRecord {
  return {
    actionId: 1,
    revision: 3,
    payload: Buffer.from("{}"),
    ...members,
  };
}

function recordingAfter(lastMs = 0): Recording {
  return new Recording({
    actions: ACTIONS,
    storedUses: new Map(),
    last: { event: 10, delivery: 20, lastMs },
  });
}

const recorded = (rowid: number, deliveries = 2, timestampedMs = NOW) =>
  ({ kind: "recorded", rowid, timestampedMs, deliveries }) as const;
const kinds = (decisions: readonly { readonly kind: string }[]): string[] =>
  decisions.map(({ kind }) => kind);

describe("a call of several events", () => {
  it("leaves nothing behind where it is refused: no number or key", () => {
    const recording = recordingAfter(NOW);
    const keyed = candidate({ idempotencyKey: "k" });
    expect(recording.decide({ atomic: false, nowMs: NOW, events: [candidate()] })).toEqual([recorded(11)]);
    expect(
      kinds(recording.decide({ atomic: true, nowMs: NOW, events: [keyed, candidate({ revision: 1 })] })),
    ).toEqual(["left_out", "stale"]);
    const other = { ...keyed, payload: Buffer.from("[]") };
    expect(recording.decide({ atomic: false, nowMs: NOW, events: [other] })).toEqual([recorded(12)]);
    expect(recording.accepted.map(({ rowid }) => rowid)).toEqual([11, 12]);
  });

  it("goes in for the most part where its deliveries are very many, and whole where it is atomic", () => {
    const events = Array.from({ length: 5 }, () => candidate({ actionId: 2, revision: 1 }));
    expect(recordingAfter().decide({ atomic: false, nowMs: NOW, events })).toHaveLength(2);
    expect(recordingAfter().decide({ atomic: true, nowMs: NOW, events })).toHaveLength(5);
    const payload = Buffer.alloc(600_000);
    const large = Array.from({ length: 5 }, () => candidate({ actionId: 3, revision: 1, payload }));
    expect(recordingAfter().decide({ atomic: false, nowMs: NOW, events: large })).toHaveLength(2);
    // Each call gets an event in.
    const recording = recordingAfter();
    const taken = [1, 2, 3].map(() => recording.decide({ atomic: false, nowMs: NOW, events }).length);
    expect(taken).toEqual([2, 1, 1]);
  });
});

it("has times that rise, whatever the clock says", () => {
  const recording = recordingAfter(NOW);
  const decided = [500, -5_000, 900].flatMap((byMs) =>
    recording.decide({ atomic: false, nowMs: NOW + byMs, events: [candidate()] }),
  );
  expect(decided).toEqual([
    recorded(11, 2, NOW + 500),
    recorded(12, 2, NOW + 500),
    recorded(13, 2, NOW + 900),
  ]);
});
