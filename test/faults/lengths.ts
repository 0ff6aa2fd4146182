/** How much of something a test does: in the ordinary suite, where 0 leaves it out, and in `npm run test:faults`. */
type Length = readonly [short: number, long: number];

/**
 * The tests that have a short and a long form, by their file below `test`. `npm run test:faults` runs these files.
 */
export const LENGTHS = {
  "faults/kill": { kills: [1, 300] },
  "faults/ordered": { kills: [0, 60], subscriptions: [0, 20], "events each": [0, 1_000] },
  "faults/listen": { kills: [0, 20], sleeps: [0, 2], events: [0, 10_000], "events in order": [0, 1_500] },
  "faults/disk-full": { fills: [0, 5] },
  "faults/disk-errors": { cases: [0, 12], "failed fsyncs": [1, 10] },
  "faults/damage": { "places each": [3, 100] },
  "faults/power-cut": { "cuts under load": [0, 400], "cuts after a failed fsync": [0, 50] },
  "faults/power-cut-commands": { "cuts in a first start": [1, 50], "cuts in commands": [0, 200] },
  "faults/power-cut-data": { "cuts each": [0, 50] },
  "faults/bulk": { lines: [0, 1_000_000], kills: [0, 2] },
  "faults/terminate": { stops: [0, 50] },
  "faults/descriptors": { floods: [0, 10] },
  "faults/hoarding": { "silent connections": [0, 10_000], readers: [0, 400], bodies: [0, 300] },
  "faults/move": { events: [0, 2_000_000], kills: [0, 3] },
  "faults/model": { sequences: [10, 2_000] },

  "app/metrics": { scrapes: [40, 1_000] },
  "cli/output/contract": { "formats on a data folder": [1, 3] },
  "cli/nodes": { servers: [0, 2] },
  "cli/registry/export": { registries: [3, 100] },
  "delivery/rebinding": { "names each": [6, 40] },
  "e2e/github": { "event types": [4, 58] },
  "e2e/replay-kill": { events: [0, 100_000], kills: [0, 2] },
  "e2e/rolling-upgrade": { "events each": [0, 400], subscriptions: [0, 8], publishers: [0, 6] },
  "json/scanner": { texts: [1_000, 20_000] },
  "schema/budget": { "event types": [4, 58] },
  "schema/compatibility/accepts": { schemas: [25, 3_000] },
  "schema/compatibility/hunt": { changes: [30, 20_000] },
  "schema/compatibility/wide": { "versions of GitHub's": [2, 103], "versions of AsyncAPI's": [1, 6] },
  "schema/hostile": { "wide schemas": [2, 8] },
  "schema/pattern": { patterns: [100, 15_000] },
  "schema/plain-ajv": { schemas: [15, 5_000] },
  "schema/sample/sampler": { "event types": [3, 58] },
  "store/damaged-log": { "power cuts": [30, 400] },
  "store/rules/shards": { shards: [128, 1_024], nodes: [30, 100] },
  "store/upgrade": { kills: [1, 10], events: [10_000, 200_000] },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Length>>>>;

export type Tested = keyof typeof LENGTHS;
