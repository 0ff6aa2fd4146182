import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { EvregError } from "../../../src/domain/error.ts";
import { checkSchema } from "../../../src/schema/check.ts";
import { compare } from "../../../src/schema/compatibility/compare.ts";
import { Judge } from "./judge.ts";
import { anyEdits, edited } from "./random-edits.ts";
import { payloadFor, randomFrom } from "./random-payloads.ts";
import { anyDocument } from "./random-schemas.ts";
import type { Json } from "./random-schemas.ts";

const RUNS = Number(process.env["COMPATIBILITY_RUNS"] ?? 500);
const PAYLOADS = 24;

function isTaken(schema: Json): boolean {
  try {
    checkSchema(schema);
    return true;
  } catch (error) {
    if (error instanceof EvregError) return false;
    throw error;
  }
}

test(`no payload of ${RUNS} random changes breaks whom the verdict calls safe`, () => {
  const counts = { producerSafe: 0, consumerSafe: 0, judged: 0, breaks: 0, proven: 0 };
  const hunt = fc.property(anyDocument, anyEdits, fc.integer(), (old, edits, seed) => {
    const next = edited(old, edits);
    fc.pre(!isDeepStrictEqual(old, next) && isTaken(old) && isTaken(next));
    const producer = compare(old, next, { mode: "producer" }).breaks;
    const consumer = compare(old, next, { mode: "consumer" }).breaks;
    const judge = new Judge(old, next);
    const random = randomFrom(seed);
    const rounds = producer.length === 0 || consumer.length === 0 ? PAYLOADS : 0;
    for (let round = 0; round < rounds; round++) {
      const payload = payloadFor(round % 2 === 0 ? old : next, random);
      if (producer.length === 0)
        expect(judge.breaksProducer(payload), JSON.stringify({ payload })).toBe(false);
      if (consumer.length === 0)
        expect(judge.breaksConsumer(payload), JSON.stringify({ payload })).toBe(false);
      const { old: by, next: nw } = judge.accepted(payload);
      if (by || nw) counts.judged++;
    }
    if (producer.length === 0) counts.producerSafe++;
    if (consumer.length === 0) counts.consumerSafe++;
    for (const found of [...producer, ...consumer]) {
      counts.breaks++;
      if (found.certainty !== "proven") continue;
      counts.proven++;
      if (found.example === undefined) continue;
      const { old: before, next: after } = judge.accepted(found.example as Json);
      expect({ before, after }, JSON.stringify(found)).toEqual(
        found.side === "producer" ? { before: true, after: false } : { before: false, after: true },
      );
    }
  });
  fc.assert(hunt, { numRuns: RUNS, ...(process.env["SEED"] ? { seed: Number(process.env["SEED"]) } : {}) });
  if (process.env["SHOW"]) process.stdout.write(`${JSON.stringify(counts)}\n`);
}, 300_000);
