import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compare } from "../../../src/schema/compatibility/compare.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { isLong, lengthOf, report } from "../../faults/length.ts";
import { ifTaken } from "../refused.ts";
import { Judge } from "./judge.ts";
import { anyChange } from "./random-changes.ts";
import { payloadFor } from "./random-payloads.ts";
import type { Json } from "./random-schemas.ts";

const RUNS = lengthOf("schema/compatibility/hunt").changes;
const PAYLOADS = 16;
/** The long form ends by then, however far it got. */
const LONGEST_MS = 290_000;

test(
  "no payload breaks a side that the comparison of random schemas calls safe",
  () => {
    const counts = {
      changes: 0,
      "safe for producers": 0,
      "safe for consumers": 0,
      payloads: 0,
      breaks: 0,
      proven: 0,
    };
    const hunt = fc.property(anyChange, fc.nat(), ({ old, next }, seed) => {
      fc.pre(!isDeepStrictEqual(old, next));
      const judge = ifTaken(() => new Judge(old, next));
      fc.pre(judge !== undefined);
      const producer = compare(old, next, { mode: "producer" });
      const consumer = compare(old, next, { mode: "consumer" });
      const random = new SeededRandom(seed);
      const tries = producer.length === 0 || consumer.length === 0 ? PAYLOADS : 0;
      for (let round = 0; round < tries; round++) {
        const payload = payloadFor(round % 2 === 0 ? old : next, random);
        const shown = JSON.stringify({ payload });
        if (producer.length === 0) expect(judge.breaksProducer(payload), shown).toBe(false);
        if (consumer.length === 0) expect(judge.breaksConsumer(payload), shown).toBe(false);
        const { old: before, next: after } = judge.accepted(payload);
        if (before || after) counts.payloads++;
      }
      for (const found of [...producer, ...consumer]) {
        if (found.certainty === "proven") counts.proven++;
        if (found.example === undefined) continue;
        const verdict = judge.accepted(found.example as Json);
        const isProducer = found.side === "producer";
        expect(verdict, JSON.stringify(found)).toEqual({ old: isProducer, next: !isProducer });
      }
      counts.changes++;
      if (producer.length === 0) counts["safe for producers"]++;
      if (consumer.length === 0) counts["safe for consumers"]++;
      counts.breaks += producer.length + consumer.length;
    });
    const bounded = isLong ? { interruptAfterTimeLimit: LONGEST_MS } : {};
    fc.assert(hunt, { numRuns: RUNS, ...bounded });
    // A hunt in which hardly any payload conforms finds nothing.
    expect(counts.payloads).toBeGreaterThan(3 * counts.changes);
    report("compatibility", counts);
  },
  LONGEST_MS + 10_000,
);
